//! docs/experiment.schema.json and docs/lab.schema.json: the schemas of experiment and lab files
//! for editors, generated from the declarations.

use punctual_plan::{
    DefaultValue, SectionKey, SectionKeys, ValueType, Word, WorkloadKind, experiment_sections,
};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

const REGENERATE: &str = "PUNCTUAL_WRITE_DOCS=1 cargo test -p punctual-plan --test pure schema::";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema of experiments.
fn schema() -> Value {
    schema_of("An experiment file of punctual: see punctual-experiment(5)", experiment_sections())
}

/// The schema of labs: an experiment, unless it is in its own file, and three further sections.
fn lab_schema() -> Value {
    let all = experiment_sections().into_iter().chain(punctual_plan::lab::lab_sections());
    let mut schema = schema_of("A lab file of punctual: see docs/lab.md", all);
    let values = json!({"anyOf": [{"type": "array"}, {"type": "object"}]});
    let some = json!({"anyOf": [
        {"type": ["string", "integer", "boolean"]},
        {"type": "array", "items": {"type": ["string", "integer", "boolean"]}},
    ]});
    let named = |of: Value| json!({"type": "object", "additionalProperties": of});
    schema["properties"]["axes"] = named(values);
    schema["properties"]["exclude"] = json!({"type": "array", "items": named(some)});
    schema
}

fn schema_of(title: &str, sections: impl IntoIterator<Item = SectionKeys>) -> Value {
    let (mut properties, mut definitions) = (Map::new(), Map::new());
    for section in sections {
        let name = section.header.trim_matches(['[', ']']);
        let value = match name {
            "measure" => measure(&section.keys, &mut definitions),
            _ => table(&section.keys),
        };
        let many = section.header.starts_with("[[");
        let value = if many { json!({"type": "array", "items": value}) } else { value };
        properties.insert(name.to_owned(), value);
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "definitions": definitions,
    })
}

/// One alternative for each kind: the keys of every measure, which are in the definitions, and its
/// own.
fn measure(common: &[SectionKey], definitions: &mut Map<String, Value>) -> Value {
    definitions.extend(common.iter().map(|key| (key.name.to_owned(), property(key))));
    let kinds = WorkloadKind::WORDS.iter().map(|(word, kind)| {
        let mut table = table(&kind.keys());
        for key in common {
            let defined = format!("#/definitions/{}", key.name);
            table["properties"][key.name] = json!({"$ref": defined});
        }
        table["properties"]["kind"] = json!({"const": word, "description": kind.title()});
        table["required"] = json!(["kind"]);
        table
    });
    json!({"oneOf": kinds.collect::<Vec<_>>()})
}

fn table(keys: &[SectionKey]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let is_needed = |key: &&SectionKey| key.default == DefaultValue::Needed;
    let needed: Vec<&str> = keys.iter().filter(is_needed).map(|key| key.name).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": needed,
    })
}

fn property(key: &SectionKey) -> Value {
    let mut value = value_schema(&key.value);
    let lines: Vec<&str> = key.about.lines().map(str::trim).collect();
    let text = match key.default {
        DefaultValue::Words("") => lines.join(" "),
        DefaultValue::Words(words) => format!("{} Default: {words}.", lines.join(" ").trim()),
        _ => lines.join(" "),
    };
    value["description"] = json!(text.trim());
    if let DefaultValue::Value(default) = &key.default {
        let parsed: toml::Table = format!("value = {default}").parse().expect(default);
        value["default"] = json!(parsed["value"]);
    }
    value
}

fn value_schema(value: &ValueType) -> Value {
    match value {
        ValueType::Boolean => json!({"type": "boolean"}),
        ValueType::Integer { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        ValueType::Size { bare: true, .. } => json!({"type": ["string", "integer"]}),
        ValueType::Duration { .. } | ValueType::Size { .. } | ValueType::Text(_) => {
            json!({"type": "string"})
        }
        ValueType::Words(words) => json!({"type": "string", "enum": words}),
        ValueType::Spellings(words) => json!({"type": "string", "examples": words}),
        ValueType::List { of, most: Some(most) } => {
            json!({"type": "array", "items": value_schema(of), "maxItems": most})
        }
        ValueType::List { of, most: None } => {
            json!({"type": "array", "items": value_schema(of)})
        }
        ValueType::Either(types) => {
            json!({"anyOf": types.iter().map(value_schema).collect::<Vec<_>>()})
        }
        ValueType::Named(of) => {
            json!({"type": "object", "additionalProperties": value_schema(of)})
        }
        ValueType::Table(keys) => table(keys),
        ValueType::Sections(keys) => json!({"type": "array", "items": table(keys)}),
    }
}

#[test]
fn the_schemas_are_up_to_date() {
    for (name, made) in [("experiment", schema()), ("lab", lab_schema())] {
        let path = root().join(format!("docs/{name}.schema.json"));
        let made = format!("{made:#}\n");
        if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
            std::fs::write(path, made).unwrap();
            continue;
        }
        let found = std::fs::read_to_string(path).unwrap();
        assert!(found == made, "docs/{name}.schema.json is out of date: {REGENERATE}");
    }
}

/// Why a value does not match, for the keywords of the schema that this file uses.
fn misfit(root: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let defined = root.pointer(name.trim_start_matches('#')).expect(name);
        return misfit(root, defined, value, place);
    }
    if let Some(alternatives) =
        schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array)
    {
        let why: Vec<Option<String>> =
            alternatives.iter().map(|one| misfit(root, one, value, place)).collect();
        let fitting = why.iter().filter(|why| why.is_none()).count();
        let is_right = fitting == 1 || fitting > 1 && schema.get("anyOf").is_some();
        return (!is_right).then(|| format!("{place}: {fitting} fit: {why:?}"));
    }
    if let Some(constant) = schema.get("const") {
        return (constant != value).then(|| format!("{place}: not {constant}"));
    }
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        other => panic!("{other}"),
    };
    let fits = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        name => is(name.as_str().expect("a type")),
    };
    if !fits {
        return Some(format!("{place}: {value} is not {}", schema["type"]));
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        return Some(format!("{place}: {value} is no word"));
    }
    let beyond = |bound: &str, is_beyond: fn(i64, i64) -> bool| {
        let bound = schema.get(bound).and_then(Value::as_i64);
        bound.zip(value.as_i64()).is_some_and(|(bound, value)| is_beyond(value, bound))
    };
    if beyond("minimum", |value, least| value < least)
        || beyond("maximum", |value, most| value > most)
    {
        return Some(format!("{place}: {value} is out of bounds"));
    }
    if let Some(items) = value.as_array() {
        let schema = schema.get("items")?;
        return items.iter().find_map(|item| misfit(root, schema, item, place));
    }
    let object = value.as_object()?;
    let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = needed.into_iter().find(|key| !object.contains_key(*key)) {
        return Some(format!("{place}: {missing} is missing"));
    }
    // By default any are allowed.
    let others = schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
    object.iter().find_map(|(key, value)| {
        let known = schema.get("properties").and_then(|all| all.get(key));
        match known.unwrap_or(others) {
            Value::Bool(true) => None,
            Value::Bool(false) => Some(format!("{place}: {key} is unknown")),
            schema => misfit(root, schema, value, &format!("{place}.{key}")),
        }
    })
}

#[test]
fn the_schema_accepts_examples_and_refuses_mistakes() {
    let (schema, lab_schema) = (schema(), lab_schema());
    let why = |text: &str| {
        let table: toml::Table = text.parse().expect(text);
        let is_lab = table.contains_key("axes") || table.contains_key("lab");
        let schema = if is_lab { &lab_schema } else { &schema };
        misfit(schema, schema, &json!(table), "")
    };
    let mut fitting = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(why(&text), None, "{}", path.display());
            fitting += 1;
        }
    }
    assert!(fitting >= 5, "{fitting}");
    for wrong in [
        "[[measure]]\nkind = 'timer'\nperiodd = '1ms'\n",
        "[[measure]]\nkind = 'timers'\n",
        "[[measure]]\nkind = 'timer'\nmethod = 'timerfs'\n",
        "[[measure]]\nkind = 'spin'\nmethod = 'timerfd'\n",
        "[[measure]]\nkind = 'timer'\npriority = 100\n",
        "[[measure]]\nkind = 'timer'\nrequire = 'max < 1ms'\n",
        "[[load]]\nname = 'x'\n",
        "[experiment]\nforever = 'yes'\n",
        "[experimnt]\n",
        "[lab]\nseed = '1..2'\n",
        "[lab]\nrepeat = 0\n",
        "[lab]\nrequire = { timer = 1 }\n",
        "[axes]\nkernel = '6.1'\n",
        "[axes]\n[[exclude]]\nkernel = { a = 1 }\n",
        "[[lab.publication]]\n[[lab.publication.row]]\nmins = '1us'\n",
    ] {
        assert!(why(wrong).is_some(), "{wrong}");
    }
}
