// Tables that can be sorted.

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const original = [...body.rows];
  heads.forEach((head, column) => {
    const button = node("button", { type: "button", onclick: () => sort(column) }, head.textContent);
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
  });
  function sort(column) {
    const numeric = heads[column].classList.contains("n");
    const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
    const now = heads[column].getAttribute("aria-sort");
    const next = now === "none" ? first : now === first ? second : "none";
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[column].setAttribute("aria-sort", next);
    const value = (row) => {
      const cell = row.cells[column];
      return cell.dataset.v != null ? Number(cell.dataset.v) : numeric ? null : cell.textContent;
    };
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      // What is missing stands last, whichever way.
      if (x == null || y == null) return (x == null) - (y == null);
      const order = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
      return next === "ascending" ? order : -order;
    };
    body.replaceChildren(...(next === "none" ? original : original.slice().sort(compare)));
  }
}
