/* The records that recorders write and recordings hold: the only definition of them.
 *
 * A record is a header and `words` further 8-byte words, little-endian, everything naturally
 * aligned. build.rs makes the Rust reader and writer from this file (src/wire.rs includes them), so
 * it keeps to `#define WIRE_X n`, and to `struct wire_x { type name; … };` with one field a line
 * and the types u8 … u64, i8 … i64 and arrays of them. A number once given to a kind keeps its
 * meaning: recordings are read by later versions.
 */
#ifndef PUNCTUAL_WIRE_H
#define PUNCTUAL_WIRE_H

struct wire_header {
	u64 ns; /* CLOCK_MONOTONIC */
	u32 tid; /* the thread that ran: for an interrupt, the interrupted one */
	u8 kind; /* WIRE_… */
	u8 words; /* payload, in 8-byte words */
	u16 cpu; /* 0xffff: not known */
};

#define WIRE_SWITCH 1
struct wire_switch {
	u32 next;
	u8 prev_prio; /* the kernel's prio + 1 in all records: 0 is deadline's -1 */
	u8 next_prio;
	u16 prev_state; /* the kernel's; 0: preempted, WIRE_HELD_BACK: by its group's quota */
};

#define WIRE_HELD_BACK 0x8000

#define WIRE_WAKING 2
#define WIRE_WAKEUP 3
#define WIRE_WAKEUP_NEW 4
struct wire_wake {
	u32 task;
	u16 target;
	u8 prio;
	u8 spare;
};

#define WIRE_MIGRATE 5
struct wire_migrate {
	u32 task;
	u16 from;
	u16 to;
};

#define WIRE_FORK 6
#define WIRE_EXEC 7
#define WIRE_EXIT 8
struct wire_fork {
	u32 child;
	u32 spare;
};

#define WIRE_PI_SETPRIO 9
struct wire_pi {
	u32 task;
	u8 old;
	u8 new;
	u16 spare;
};

#define WIRE_IRQ_ENTRY 10
#define WIRE_IRQ_EXIT 11
struct wire_irq {
	u32 irq;
	u32 handled;
};

#define WIRE_VECTOR_ENTRY 12
#define WIRE_VECTOR_EXIT 13
#define WIRE_SOFTIRQ_RAISE 14
#define WIRE_SOFTIRQ_ENTRY 15
#define WIRE_SOFTIRQ_EXIT 16
#define WIRE_IPI_SEND 17
#define WIRE_IDLE 18
#define WIRE_FREQUENCY 19
/* A vector, a target CPU, an idle state (0xffffffff: left), a frequency in kHz. */
struct wire_number {
	u32 number;
	u32 spare;
};

#define WIRE_HRTIMER_START 20
#define WIRE_HRTIMER_CANCEL 21
#define WIRE_HRTIMER_ENTRY 22
#define WIRE_HRTIMER_EXIT 23
#define WIRE_TIMER_START 24
#define WIRE_TIMER_ENTRY 25
#define WIRE_TIMER_EXIT 26
struct wire_hrtimer_start {
	u64 timer;
	u64 expires; /* CLOCK_MONOTONIC */
};
struct wire_hrtimer_entry {
	u64 timer;
	u64 now; /* 0: not read */
	u64 expires; /* 0: not known */
};
/* The same of timers that the kernel may let expire later, by so many ns. */
#define WIRE_HRTIMER_SLACK_START 27
#define WIRE_HRTIMER_SLACK_ENTRY 28
struct wire_hrtimer_slack_start {
	u64 timer;
	u64 expires;
	u64 slack;
};
struct wire_hrtimer_slack_entry {
	u64 timer;
	u64 now;
	u64 expires;
	u64 slack;
};
struct wire_timer {
	u64 timer;
	u64 value; /* start: jiffies; entry: the function */
};
struct wire_address {
	u64 address;
};

#define WIRE_SYSCALL_ENTER 30
#define WIRE_SYSCALL_EXIT 31
struct wire_syscall_enter {
	u32 number;
	u32 spare;
	u64 first;
	u64 second;
};
struct wire_syscall_exit {
	u32 number;
	u32 spare;
	i64 result;
};

#define WIRE_FUTEX_ENTER 32
#define WIRE_FUTEX_EXIT 33
struct wire_futex_enter {
	u64 address;
	u32 op; /* as in the system call, flags included */
	u32 waits; /* WIRE_FUTEX_FOR_…; 0: not known */
};
#define WIRE_FUTEX_FOR_LOCK 1 /* the word is to have the value of a taken lock */
#define WIRE_FUTEX_FOR_OTHER 2
struct wire_futex_exit {
	u32 op;
	i32 result;
};

#define WIRE_CONTENTION_BEGIN 34
#define WIRE_CONTENTION_END 35
struct wire_contention {
	u64 lock;
	i32 value; /* begin: flags; end: result */
	u32 spare;
};

#define WIRE_PAGE_FAULT 36
struct wire_page_fault {
	u64 address;
	u64 ip;
	u32 user;
	u32 spare;
};

#define WIRE_PAGE_ALLOC 37
#define WIRE_RECLAIM_BEGIN 38
#define WIRE_RECLAIM_END 39
struct wire_page_alloc {
	u64 page;
	u32 order;
	u32 spare;
};

#define WIRE_KMALLOC 40
#define WIRE_CACHE_ALLOC 41
struct wire_kmalloc {
	u64 requested;
	u64 allocated;
};

/* Recordings before these had neither the object nor what is freed. */
#define WIRE_KMALLOC_OBJECT 69
#define WIRE_CACHE_ALLOC_OBJECT 70
struct wire_object {
	u64 requested;
	u64 allocated;
	u64 object;
};
#define WIRE_KFREE 71 /* struct wire_address */
#define WIRE_CACHE_FREE 72 /* the same */

#define WIRE_BLOCK_ISSUE 42
#define WIRE_BLOCK_COMPLETE 43
struct wire_block {
	u64 sector;
	u32 device;
	u32 bytes;
	i32 value; /* issue: 1 for a write; complete: an errno */
	u32 spare;
};

#define WIRE_JOURNAL_START 44
#define WIRE_JOURNAL_END 45
struct wire_journal {
	u32 device;
	u32 transaction;
};

#define WIRE_MMC_START 46
#define WIRE_MMC_DONE 47
struct wire_mmc {
	u32 opcode;
	i32 value; /* start: blocks; done: an errno */
};

#define WIRE_WORK_START 48
#define WIRE_WORK_END 49
#define WIRE_NAPI_POLL 50
struct wire_napi {
	u32 work;
	u32 budget;
};

/* One that stops a process or lets it go on. */
#define WIRE_SIGNAL 51
#define WIRE_SIGNAL_FIRST 18
#define WIRE_SIGNAL_LAST 22
struct wire_signal {
	u32 task;
	u32 signal;
};

#define WIRE_PACKET 52
struct wire_packet {
	u8 device[16];
	u32 bytes;
	u32 spare;
};
#define WIRE_SOCKET 53
struct wire_socket {
	u16 family;
	u16 protocol;
	u32 spare;
};

/* Written by punctual itself. */
#define WIRE_INTERRUPTED 59
struct wire_interrupted {
	u32 call; /* the number of the interrupted system call; WIRE_NO_CALL: none */
	u32 spare;
};
#define WIRE_RELEASED 58 /* struct wire_fork: the task */
#define WIRE_STACK 60
#define WIRE_POINT 61
#define WIRE_CALL 62
#define WIRE_SAMPLE 63
#define WIRE_LOST 64
#define WIRE_NAME 65
#define WIRE_RAW 66
#define WIRE_TRACEPOINT 67
#define WIRE_CONTEXT 68 /* of another tool's trace */
struct wire_context {
	u64 site;
	u32 bits; /* as core::event::CpuContext has them */
	u32 section;
};
struct wire_point {
	u32 point;
	u8 kind; /* 0 point, 1 begin, 2 end */
	u8 count; /* of the values that are used */
	u16 spare;
	i64 first;
	i64 second;
};
struct wire_call {
	u64 began;
	u32 function;
	u16 depth;
	u8 left;
	u8 has_argument;
	u64 argument;
};
struct wire_sample {
	u64 due;
	u32 series;
	u32 spare;
};
struct wire_lost {
	u64 count;
	u64 since;
};
/* A task that is born, or has another name. The header's tid is the task. Never in a recording: its
 * names are apart. */
struct wire_name {
	u32 process;
	u8 policy;
	u8 prio;
	u16 spare;
	u8 comm[16];
};
/* The first bytes of a tracepoint's own record, and which tracepoint: on its way to the translator,
 * never in a recording. */
struct wire_raw {
	u32 tracepoint;
	u32 bytes;
	u8 record[72];
};

/* A tracepoint that is recorded by name: its own record behind the common fields. Made of wire_raw
 * by the translator. */
struct wire_tracepoint {
	u32 tracepoint; /* its place among the names */
	u32 bytes;
	u8 record[72];
};

/* A CPU's buffer: an element of the array `buffers`. Positions are in 8-byte words and
 * only grow. */
struct wire_buffer {
	u64 head; /* reserved by writers */
	u64 done; /* written by writers; equal to head when no writer is at work */
	u64 missed; /* lost since the last record that found room */
	u64 missed_since; /* the first of them, CLOCK_MONOTONIC */
	u64 lost; /* all that were ever lost */
	u64 held; /* the task that a quota held back here, and is not known to hold no longer */
	u64 held_tid;
	u64 refused; /* instants within cycles, to leave room for the cycles */
	u8 writers_line[64];
	u64 tail; /* what the reader has taken; the reader's to write */
	u8 readers_line[120];
};

/* What is counted, on one CPU; never in a recording. */
struct wire_counts {
	u64 syscalls[1024]; /* WIRE_MAX_SYSCALLS */
	u64 voluntary;
	u64 preempted;
	u64 pages;
	u64 faults_user;
	u64 faults_kernel;
	u64 irqs;
	u64 softirqs;
	u64 kmalloc_bytes;
};

/* Where the time of one sample of a timer went (bpf/account.h): `ns` is the timer's expiry, `cpu`
 * where it fired, `tid` the measured thread. The payload is pieces in the order of time, each its
 * part in the top byte and its ns below; what stands in no piece is not known. Then a word that is
 * not 0 where the thread was put on another CPU meanwhile. Never in a recording. */
#define WIRE_ACCOUNT 80
#define WIRE_ACCOUNT_PIECES 16
#define WIRE_ACCOUNT_PARTS 16 /* that a sample may have */
#define WIRE_PART_UNKNOWN 0
#define WIRE_PART_TIMER_LATE 1
#define WIRE_PART_HARDIRQ 2
#define WIRE_PART_SOFTIRQ 3
#define WIRE_PART_IDLE_EXIT 4
#define WIRE_PART_NOT_SWITCHED 5
#define WIRE_PART_PREEMPTED 6
#define WIRE_PART_THROTTLED 7
#define WIRE_PART_RUNQUEUE 8
#define WIRE_PART_BLOCKED 9
#define WIRE_PART_ITSELF 10
#define WIRE_PART_STOPPED 11
#define WIRE_PART_LOCK 12
#define WIRE_PART_IO 13
#define WIRE_PART_PAGE_FAULT 14
#define WIRE_PART_OVERRUN 15 /* the cycle before had not ended */
#define WIRE_PART_RECLAIM 16
#define WIRE_PART_RECLAIM_RAN 17 /* on a CPU; the other one asleep */
#define WIRE_PART_FAULT_RAN 18 /* on a CPU, in a page fault */
#define WIRE_PART_STEAL 19 /* the hypervisor had taken the CPU */
#define WIRE_PART_SLACK 20 /* the kernel let the timer expire later */
#define WIRE_PART_KERNEL 21 /* the thread itself, in a system call */
#define WIRE_PART_TIMEOUT 22 /* what it waited for did not come */
#define WIRE_PART_SWITCH 23 /* the CPU was switching to the thread */
#define WIRE_CYCLE_PARTS 24
#define WIRE_ACCOUNT_ROOM 32 /* a power of two */

#define WIRE_ACCOUNT_THREADS 1024
#define WIRE_ACCOUNT_WAITING 8
#define WIRE_ACCOUNT_CHANGES 32

/* A watched thread and the sample that it is in. */
struct wire_account_thread {
	u64 active; /* a sample has begun that was not told yet */
	u64 begin; /* the timer's expiry, CLOCK_MONOTONIC */
	u64 from; /* until when its time was divided */
	u64 since; /* since when it waits */
	u64 hard; /* the totals of its CPU at `from` */
	u64 soft;
	u64 mark; /* the CPU's change at which it began to run */
	u64 count; /* of pieces */
	u64 full; /* there was no room for another */
	u64 blocked; /* WIRE_PART_BLOCKED or _STOPPED: it sleeps; 0: it does not */
	u64 held; /* the quota of its group held it back when it was last looked at */
	u64 unseen; /* more threads wait on its CPU than are looked at */
	u64 task; /* the kernel's, 0: not known */
	u64 timer_cpu; /* where its timer fired */
	u32 cpu;
	i32 prio;
	u64 wait[32]; /* WIRE_ACCOUNT_ROOM: of the wait that goes on, by part */
	u64 pieces[16]; /* WIRE_ACCOUNT_PIECES */
	u64 moved; /* to another CPU, since the timer fired */
	u64 resumed; /* when it ran after a sleep that no timer ended */
	u64 resumed_from; /* that sleep, as `blocked` */
};

#define WIRE_ACCOUNT_CLOCKS 4
/* How far clocks of timers are ahead of CLOCK_MONOTONIC, which is the first; in ns, modulo 2^64. */
struct wire_account_clocks {
	u64 ahead[4]; /* WIRE_ACCOUNT_CLOCKS */
};

/* A cycle of a thread of some program: from its release to its next wait. Never in a recording; the
 * header has its thread. */
#define WIRE_CYCLE 81
#define WIRE_CYCLE_CALLS 4096 /* calls of a cycle that are timed: later ones are only counted */
/* Who ended the wait. */
#define WIRE_CYCLE_UNSEEN 0
#define WIRE_CYCLE_BY_TIMER 1
#define WIRE_CYCLE_BY_TASK 2 /* also in a softirq that serves what it did: it sent a packet */
#define WIRE_CYCLE_BY_IRQ 3
#define WIRE_CYCLE_BY_SOFTIRQ 4
#define WIRE_CYCLE_FUTEX_WAIT 31 /* in `calls`: it slept in FUTEX_WAIT */
#define WIRE_CYCLE_DESCRIPTORS 63 /* in `written`: this one and all later ones */
#define WIRE_MARK 0x40 /* of a system call: marked in `calls`, at the place in the lower bits */
#define WIRE_MARK_WRITE 0x80 /* and its first argument in `written` */
#define WIRE_CYCLE_BY_SLEEP 5 /* the timer of the waiting call itself; BY_TIMER: another */
#define WIRE_CYCLE_BY_PERIOD 6 /* of SCHED_DEADLINE */
/* In the place of an operation of futex(2): FUTEX_WAIT_BITSET for a lock, by the value that the
 * word is to have. */
#define WIRE_FUTEX_WAIT_LOCK 0x89
/* The same of FUTEX_WAIT for another value: a thread that is parked. */
#define WIRE_FUTEX_WAIT_PARKED 0x80
/* How it is known who held a lock. */
#define WIRE_HOLDER_PI 1 /* the futex has the owner's id, for priority inheritance */
#define WIRE_HOLDER_MUTEX 2 /* so has the mutex of glibc that it is part of */
#define WIRE_HOLDER_WAKER 3 /* that thread ended the wait */
/* Added where its id is that of the PID namespace of the waiting thread. */
#define WIRE_HOLDER_IN_NAMESPACE 0x80
/* In the id of a task: it has none in the PID namespace whose ids are used, and this is the one of
 * the initial namespace. */
#define WIRE_OUTSIDE 0x80000000
struct wire_cycle {
	u64 release;
	u64 entered; /* the waiting call that the cycle begins with */
	u64 woken;
	u64 returned;
	u64 again; /* the next waiting call was entered */
	u64 argument; /* the first of the waiting call: a file, an address, a clock */
	u64 timer; /* the kernel's, that ended the wait; 0: none */
	u64 blocked; /* ns in other waits */
	u64 culprit_ns; /* the thread was ready and the task `culprit` ran */
	u64 culprit_behind; /* of that, while its priority was not lower */
	u64 longest_ns; /* in the system call `longest` */
	u64 written; /* file descriptors, a bit each */
	u64 holder_ns; /* the thread waited for locks, and `holder` held them */
	u32 call; /* the number of the waiting call */
	u16 operation; /* futex: its command; clock_nanosleep: its flags */
	u8 by; /* WIRE_CYCLE_BY_… */
	u8 within; /* WIRE_PART_…: what the wait is, if it is none of the cycle's */
	u32 waker; /* the thread that ran when the wait was ended */
	u32 blocks; /* other waits */
	u32 migrations;
	u32 syscalls;
	u32 faults;
	u32 calls; /* which of the marked ones, a bit each */
	u32 culprit;
	u32 longest;
	u32 holder;
	u32 holder_waits;
	u32 holder_by; /* WIRE_HOLDER_… */
	u32 awaited; /* who ended the other waits that took the longest */
	u64 awaited_ns;
	u32 awaited_by; /* WIRE_CYCLE_BY_… */
	u32 elsewhere; /* waits in the call of the cycles, at other places or addresses */
	u64 likely_ns; /* of what is not known: the last task that was seen on its CPU is `likely` */
	u32 likely;
	u32 hidden; /* switches to the thread that were not seen */
	u8 waker_comm[16];
	u8 culprit_comm[16];
	u8 holder_comm[16];
	u8 awaited_comm[16];
	u64 wake[24]; /* WIRE_CYCLE_PARTS: from `release` to `returned` */
	u64 run[24]; /* from there to `again` */
};

/* An ordinary cycle of a thread: a timer woke it, it was switched to without another switch in
 * between, its call returned, and the next that it entered is its next wait. The header has the
 * timer's expiry. How its time is divided follows from these instants. */
#define WIRE_ORDINARY 86
struct wire_ordinary {
	u64 woken;
	u64 expires;
	u64 timer;
	u64 hard; /* ns in interrupts so far, of the CPU that it shall run on */
	u64 soft; /* the same in softirqs, without interrupts within them */
	u64 slack_end; /* until when the kernel might let the timer expire; 0: no slack */
	u64 changes[4]; /* where the timer expired: since when its CPU did what, twice; the older first */
	i32 prio;
	u32 cpu; /* where it shall run */
	u32 timer_cpu;
	u32 waker;
	u32 by; /* WIRE_CYCLE_BY_… */
	u32 before; /* the task that ran there before it */
	u32 ran; /* the same as its CPU knew it, and its priority */
	i32 ran_prio;
	u64 arrived; /* it was switched to */
	u64 arrived_hard;
	u64 arrived_soft;
	u64 returned;
	u64 returned_hard;
	u64 returned_soft;
	u64 again;
	u64 again_hard;
	u64 again_soft;
	u64 entered; /* this and what follows: as in struct wire_cycle */
	u64 slept; /* when it went to sleep in the wait */
	u64 argument;
	u64 written;
	u32 call;
	u16 operation;
	u16 within;
	u32 calls;
	u32 faults;
	u8 waker_comm[16];
	u8 before_comm[16];
};

/* Where the cycle that a thread is in stands in its value in the map `values`, for user space: the
 * offsets of members of struct attached, and values of some. */
#define WIRE_ATTACHED_STATE 568
#define WIRE_ATTACHED_PHASE 572
#define WIRE_ATTACHED_CALL 576
#define WIRE_ATTACHED_STAGE 600
#define WIRE_ATTACHED_POSTPONED 608
#define WIRE_ATTACHED_RETURNED 744
#define WIRE_ATTACHED_CYCLE 872
#define WIRE_ATTACHED_ENTERED 1704
#define WIRE_ATTACHED_ASKED 1800
#define WIRE_ATTACHED_ASKS 1808
#define WIRE_ATTACHED_AGAIN 768
#define WIRE_ATTACHED_NUMBER 2548
#define WIRE_PHASE_OPEN 1
#define WIRE_PHASE_WAITING 2
#define WIRE_PHASE_WOKEN 3
#define WIRE_RETURN_POSTPONED 3 /* a stage */
#define WIRE_ENTRY_POSTPONED 4
#define WIRE_STATE_ASLEEP 3

/* Where a thread was within a cycle. The header has its end, and the thread. */
#define WIRE_MOMENT 83
#define WIRE_MOMENT_PREEMPTED 1
#define WIRE_MOMENT_ASLEEP 2
#define WIRE_MOMENT_RAN 3 /* when a timer interrupted it */
#define WIRE_MOMENT_EXEC 4 /* from then on it runs another program */
#define WIRE_MOMENT_EXIT 5 /* it ended; `next_comm` is its own name */
#define WIRE_MOMENT_FAULT 6 /* it touched a page that was not mapped */
#define WIRE_MOMENT_CALL 7 /* it made a call that the record of its cycle names */
#define WIRE_CYCLE_MOMENTS 64 /* of a cycle: later ones are passed over */
#define WIRE_USER_STACKS 4096
#define WIRE_USER_STACK_DEPTH 32
struct wire_moment {
	u64 begin;
	u64 slept; /* ns until it was woken */
	i32 stack; /* of its functions in user mode; below 0: none */
	u32 next; /* the thread that got the CPU; of an exit its status as of wait(2) */
	u32 call; /* the number of its system call + 1; 0: none, or not looked at */
	u8 kind; /* WIRE_MOMENT_… */
	u8 within; /* WIRE_PART_…: what the sleep is */
	u16 copy; /* the number of the copy of its stack + 1; 0: none */
	u8 next_comm[16];
	u64 woken; /* when a task ended the sleep */
	u32 waker; /* that task; 0: not known */
	u16 waker_copy; /* of its stack then, as `copy` */
	u16 holder_copy; /* of the holder's while it held the lock, as `copy` */
	u8 waker_comm[16];
	u32 holder; /* of the lock that it sleeps for; 0: not known */
	u32 holder_call; /* of the holder then, as `call` */
	u64 holder_off; /* ns of the sleep that it had no CPU */
	u64 holder_seen; /* when its stack was copied */
	u32 holder_did; /* WIRE_HOLDING_…; 0: it ran, or that is not known */
	u32 spare;
};
#define WIRE_HOLDING_CALLED 1 /* it made a system call */
#define WIRE_HOLDING_PREEMPTED 2 /* it lost its CPU to another task, or waits for one */
#define WIRE_HOLDING_ASLEEP 3

/* A copy of a user stack, from its pointer upwards. The bytes follow the header. */
#define WIRE_STACK_COPIES 128
#define WIRE_STACK_PAGE 4096 /* read at once: one byte that is absent fails a whole read */
#define WIRE_STACK_BYTES 8192
/* Of a thread this many of a kind in this time, one after the other: so those of whole cycles, not
 * always those of the same place. */
#define WIRE_COPIES_IN_A_ROW 16
#define WIRE_COPIES_EVERY 100000000
struct wire_stack_copy {
	u64 taken; /* when, which user space compares with the moment; 0: it may be overwritten */
	u64 ip;
	u64 sp;
	u64 bp;
	u64 lr; /* where that is a register */
	u64 bytes; /* up to the first page that could not be read */
	u32 tid;
	u32 process;
	u64 spare;
};

/* The CPU was taken from a thread that polls; or, if it kept it, an interrupt or softirq ran. The
 * header has the end, and the thread. */
#define WIRE_GAP 84
#define WIRE_POLLS_AFTER 100000000 /* ns after the return of its last wait a thread polls */
struct wire_gap {
	u64 begin;
	u64 parts[24]; /* WIRE_CYCLE_PARTS: these add up to it */
	u64 by_ns; /* how long the task that had the CPU for the longest had it */
	u32 by; /* that task; 0: none */
	u32 spare;
	u8 by_comm[16];
};

/* How long a thread was in each state, of those that its own changes show. The header of a record
 * has its end; of a thread that lives it is the last of its value. */
#define WIRE_TIMES 85
struct wire_times {
	u64 state[4]; /* by state: not known, on a CPU, ready, asleep */
	u64 stopped; /* of that asleep */
	u64 since; /* when it came into the state that it is in; 0: no change was seen */
	u64 now; /* that state */
	u32 lost_cycles; /* whose records found no room, since it began or ran another program */
	u32 lost_gaps;
};

/* A task that waited for the CPU while a watched thread had it, and got it next. */
#define WIRE_DELAYED_TASKS 2048
#define WIRE_DELAYED_FROM 10000 /* ns: shorter waits are not kept */
struct wire_delayed_key {
	u32 thread;
	u32 task;
};
struct wire_delayed_task {
	u64 times;
	u64 total;
	u64 longest;
	u8 comm[16];
};

/* Where a thread waits, of waits before its call is selected: what called shows at which place of
 * the program. Never in a recording. */
#define WIRE_WAIT 87
#define WIRE_WAIT_WORDS 128
#define WIRE_WAITS_SHOWN 4096 /* of a thread */
struct wire_wait {
	u64 entered; /* as in struct wire_cycle */
	u64 ip;
	u64 sp;
	u64 bp;
	u64 lr; /* where that is a register */
	u32 process;
	u32 words; /* of the stack that could be read */
	u64 stack[128]; /* WIRE_WAIT_WORDS, from its pointer upwards */
};

/* The waiting call of a thread's cycles, and its place: where it is made and what called, by return
 * addresses on the stack. The size of what is between them is that of their functions. */
struct wire_selection {
	u64 argument;
	u32 call; /* WIRE_MAX_SYSCALLS: none is */
	u16 operation;
	u16 how; /* 0: no call is selected; WIRE_SELECTED… */
	u64 ip; /* 0: any place */
	u32 reach; /* bytes of the stack up to the last caller */
	u32 callers;
	u16 at[12]; /* WIRE_SELECTED_CALLERS: where they are, in words from the stack pointer */
	u64 caller[12];
};
#define WIRE_SELECTED 1
#define WIRE_SELECTED_ARGUMENT 2 /* its first argument too */
#define WIRE_SELECTED_CALLERS 12

/* Threads that `attach` watches at once, and the table of their numbers: an id begins at
 * id * WIRE_PLACE_FACTOR >> WIRE_PLACE_SHIFT, of 32 bits. */
#define WIRE_WATCHED 2048
#define WIRE_PLACES 16384
#define WIRE_PLACE_FACTOR 2654435769
#define WIRE_PLACE_SHIFT 18
#define WIRE_PLACE_LEFT 0xffffffff00000000
#define WIRE_PROBES 8

/* One interrupt that somebody waits for; never in a recording. Instants are of CLOCK_MONOTONIC;
 * 0: none. */
struct wire_interrupt {
	u64 armed; /* when it was raised, or when the timer shall expire; 0 again when it came */
	u64 handler; /* the first entry since */
	u64 expiry; /* of the timer */
	u64 raised; /* by the program `raise` */
	u64 entries; /* all that came */
	u64 cost; /* of WIRE_STAMPS stamps */
	u32 tid; /* the waiting thread */
	u32 cpu; /* where it was handled */
};
#define WIRE_STAMPS 1000

#define WIRE_RELEASES 16
/* The releases of one SCHED_DEADLINE task, as the kernel programs their timer; never in a
 * recording. Instants are of CLOCK_MONOTONIC. */
struct wire_release {
	u64 armed; /* how many so far */
	u64 at[16]; /* WIRE_RELEASES: the newest, each at its number modulo so many */
	u64 timer; /* the address of the task's timer; 0: not seen yet */
	u32 tid; /* the task */
	u32 pad;
};
#define WIRE_NO_CPU 0xffffffff

/* What kept a spinning thread from its CPU, in ns so far; never in a recording. */
struct wire_gaps {
	u64 hard; /* interrupts */
	u64 soft; /* softirqs, without interrupts within them */
	u64 task; /* other tasks, without either */
	u64 hard_since;
	u64 depth; /* of nested handlers */
	u64 soft_since; /* 0: none is served */
	u64 soft_hard; /* `hard` then */
	u64 away_since; /* 0: the thread runs */
	u64 away_other; /* `hard` and `soft` then */
};

/* Where the network had a CPU, in ns so far (network.bpf.c); never in a recording. One page. */
#define WIRE_NETWORK_CPUS 128
struct wire_network {
	i64 driver; /* the transmit function of the chosen device */
	i64 softirq; /* NET_RX and NET_TX, without that */
	u64 frames; /* that the driver took */
	u64 within; /* whether it transmits in a softirq */
};

/* An entry into the kernel on a chosen CPU, with who caused it; never in a recording. The header
 * has its end, and the thread that was interrupted. */
#define WIRE_ENTRY 82
#define WIRE_ENTRY_NONE 0
#define WIRE_ENTRY_IRQ 1 /* `what`: its number */
#define WIRE_ENTRY_VECTOR 2 /* WIRE_VECTOR_… */
#define WIRE_ENTRY_SOFTIRQ 3 /* its number */
#define WIRE_ENTRY_TASK 4 /* the thread that ran */
#define WIRE_ENTRY_CALL 5 /* a function call that came without an interrupt, to an idle CPU */
#define WIRE_ENTRY_NMI 6 /* its handler */
#define WIRE_ENTRY_NESTED 1 /* in `flags`: within a softirq */
#define WIRE_ENTRY_AWAY 2 /* while a preempted thread waited */
#define WIRE_ENTRY_FURTHER 4 /* a further function of an entry that has a record of its own */
#define WIRE_ENTRY_KERNEL 8 /* a kernel thread */
#define WIRE_ENTRY_SOFTIRQS 10
#define WIRE_VECTOR_LOCAL_TIMER 0
#define WIRE_VECTOR_RESCHEDULE 1
#define WIRE_VECTOR_CALL_FUNCTION 2
#define WIRE_VECTOR_CALL_FUNCTION_SINGLE 3
#define WIRE_VECTOR_IRQ_WORK 4
#define WIRE_VECTOR_PLATFORM_IPI 5
#define WIRE_VECTOR_ERROR 6
#define WIRE_VECTOR_SPURIOUS 7
#define WIRE_VECTOR_THERMAL 8
#define WIRE_VECTOR_THRESHOLD 9
#define WIRE_VECTOR_DEFERRED_ERROR 10
struct wire_entry {
	u64 begin;
	u64 own; /* ns, without what came in between */
	u64 func; /* what it ran for somebody; 0: none, or not known */
	u64 what;
	u64 at; /* when it was sent, queued or armed; 0: nobody is known */
	u64 via_what;
	u32 over; /* the thread that was interrupted; 0: the idle one */
	u32 by; /* the thread that did that */
	u32 by_cpu;
	i32 stack; /* of that thread; below 0: none */
	u32 detail; /* what keeps the tick: TICK_DEP_MASK_… */
	u8 kind;
	u8 flags;
	u8 via; /* it came out of this kind of entry, on that CPU; 0: out of the thread */
	u8 spare;
	u8 by_comm[16];
	u8 name[16]; /* of a task */
};

/* Counts of a chosen CPU, independent of the buffer's room. */
struct wire_entry_counts {
	u64 vectors[16]; /* WIRE_VECTOR_… */
	u64 irqs;
	u64 shootdowns; /* of the TLB */
	u64 own_lost; /* entries of tasks that found no room */
};

/* What a task did itself: a system call by number, or a page fault. */
#define WIRE_OWN_FAULT_USER 2000
#define WIRE_OWN_FAULT_KERNEL 2001
struct wire_own_key {
	u32 cpu;
	u32 tid;
	u32 what;
	u32 spare;
};
struct wire_own {
	u64 count;
	u8 comm[16];
};

/* Room that is never used on purpose: several writers may stand between their check and
 * their reservation. */
#define WIRE_MARGIN_WORDS 512
/* Flight mode: for each block of so many words, where its first record begins. */
#define WIRE_BLOCK_WORDS 512
/* Header included, with what is reported with it; a payload of 80 bytes (struct wire_raw) is
 * the longest. */
#define WIRE_MAX_RECORD_WORDS 12
#define WIRE_MAX_CPUS 8192
#define WIRE_STACK_DEPTH 64
#define WIRE_STACKS 16384 /* of attach --cpus: numbers from here on are of `more_stacks` */
#define WIRE_NO_SLOT 0xffff
#define WIRE_NO_CALL 0xffffffff
#define WIRE_NATIVE_CALLS 512 /* of 32-bit programs: those that are known */
#define WIRE_NATIVE_TIME32 0x8000 /* it takes 32-bit times */
#define WIRE_MAX_SYSCALLS 1024

#endif
