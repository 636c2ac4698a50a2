/* How long network softirqs ran, and the transmit function of one device's driver: totals of each
 * CPU, in a page that a task reads before and after its message.
 *
 * A word is the time so far; while it runs, less the instant at which it began, which makes it
 * negative: one word holds both, so that no reader sees half of a change. */
#include "kernel.h"
#include "wire.h"

#define NET_TX 2
#define NET_RX 3

/* Interfaces: index, and the network namespace in which it has that index. */
const volatile u32 want_index[2] = {};
const volatile u32 want_space[2] = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_NETWORK_CPUS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct wire_network);
} board SEC(".maps");

#define PROGRAM(name) SEC("tp_btf/" #name) int name(__attribute__((unused)) u64 *ctx)

INLINE struct wire_network *board_here(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&board, &cpu);
}

INLINE bool is_wanted(struct net_device *device)
{
	u32 index = device->ifindex;

	if (index != want_index[0] && index != want_index[1])
		return false;
	u32 space = device->nd_net.net->ns.inum;

	return (index == want_index[0] && space == want_space[0]) ||
	       (index == want_index[1] && space == want_space[1]);
}

INLINE bool is_network(u32 vector)
{
	return vector == NET_RX || vector == NET_TX;
}

PROGRAM(network_soft_entry)
{
	struct wire_network *here = is_network(ctx[0]) ? board_here() : 0;

	if (here && here->softirq >= 0)
		here->softirq -= bpf_ktime_get_ns();
	return 0;
}

PROGRAM(network_soft_exit)
{
	struct wire_network *here = is_network(ctx[0]) ? board_here() : 0;

	if (here && here->softirq < 0)
		here->softirq += bpf_ktime_get_ns();
	return 0;
}

/* A transmission by a softirq is the driver's time. */
PROGRAM(network_sends)
{
	struct wire_network *here;
	u64 now;

	if (!is_wanted((void *)ctx[1]))
		return 0;
	here = board_here();
	if (!here || here->driver < 0)
		return 0;
	now = bpf_ktime_get_ns();
	here->within = here->softirq < 0;
	if (here->within)
		here->softirq += now;
	here->driver -= now;
	return 0;
}

PROGRAM(network_sent)
{
	struct wire_network *here;
	u64 now;

	if (!is_wanted((void *)ctx[2]))
		return 0;
	here = board_here();
	if (!here || here->driver >= 0)
		return 0;
	now = bpf_ktime_get_ns();
	here->driver += now;
	if (here->within)
		here->softirq -= now;
	here->frames += (int)ctx[1] == 0;
	return 0;
}

const char gpl[] SEC("license") = "GPL";
