/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Data shared with user space. src/sys/layout.rs has the same layouts; sizes are checked at load. Numbers
 * are in host order unless marked 'wire'. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define CACHE_LINE 64
#define INLINE static __always_inline
/* A function that the verifier checks once, independently of its callers. It has at most five arguments;
 * its pointer arguments may be null. */
#define NOINLINE __noinline

/* No index; also: no bound. */
#define NO_INDEX 0xffffffffu
/* Set in the index of a meter or counter that lies in a session's block; the other bits are the session's
 * slot. The data of most packets are thus adjacent. Other meters and counters have tables of their own. */
#define IN_BLOCK 0x80000000u
#define NO_LIMIT 0xffffffffffffffffull
#define NO_RULE 0xff

/* Whether the program translates addresses. */
#ifndef NAT
#define NAT 0
#endif

enum direction { UPLINK, DOWNLINK };

/* The action on a packet. Packets that XDP does not handle are passed to the kernel, which delivers them
 * to the GTP-U socket or the TUN interface, where the portable path has the same rules. */
enum action { TO_USER, FORWARD, DROP, NO_FAR };

/* In the order of pith_upf::contract::DropReason. */
enum drop_reason {
	MALFORMED_GTPU,
	UNSUPPORTED_GTPU,
	UNKNOWN_TEID,
	UNKNOWN_UE,
	MALFORMED_INNER,
	SPOOFED_SOURCE,
	NO_RULE_FOUND,
	RULE_DROP,
	GATE_CLOSED,
	RATE_EXCEEDED,
	QUEUE_DELAY,
	QUEUE_FULL,
	QUOTA_EXHAUSTED,
	BUFFER_FULL,
	BUFFER_DISCARDED,
	TTL_EXCEEDED,
	N3_SEND_FAILED,
	N6_SEND_FAILED,
	BAD_CHECKSUM,
	STRAY_ERROR_INDICATION,
	CLOSED_DESTINATION,
	UNKNOWN_PEER,
	LOST_CONGESTION,
	UNKNOWN_QFI,
	DROP_REASONS
};

#define RULE_OPEN 1      /* all gates are open */
#define RULE_TUNNEL 2    /* it matches packets of tunnel `teid`; otherwise those of the data network */
#define RULE_HAS_QFI 4   /* packets that leave by tunnel are marked with `qfi` */
#define RULE_DOWNLINK 8  /* its packets go to the UE, wherever they come from */
#define RULE_ONWARD 16   /* they come by a tunnel and leave by another */
#define RULE_PEER_V6 32  /* the far end's address is IPv6 */
#define RULE_ANY_QFI 64  /* packets match with any QFI, or none */

#define RULE_METERS 3
#define RULE_URRS 2

/* A PDR with its FAR, QERs and URRs: one cache line. */
struct rule {
	u8 action; /* in the lower half; in the upper half, which of the session's flows its packets are of */
	u8 flags;
	u8 qfi; /* the octet of the container: the QFI, and the RQI (0x40) of downlink packets */
	u8 dscp;
	u32 teid;
	u64 qfis;        /* a bit for each QFI that its packets may have; without RULE_ANY_QFI only these match */
	u32 tunnel_teid; /* of the tunnel's peer */
	u32 peer[4];     /* the tunnel's peer; wire; an IPv4 address is the first */
	u32 meters[RULE_METERS];
	u32 urrs[RULE_URRS];
	u32 limits[RULE_URRS];
};

/* A token bucket as a virtual schedule: pith_upf::qos::Bucket. Times in sixteenths of a nanosecond. */
struct bucket {
	u64 rate; /* bits per second; NO_LIMIT: unlimited */
	u64 burst;
	u64 full_at;
	u64 per_byte; /* time for each byte, in 65,536ths */
};

/* A QER in one direction: pith_upf::qos::Meter. One cache line. */
struct meter {
	struct bucket peak, committed;
};

/* Packets and bytes. A counter that several CPUs and workers write is added to by one atomic instruction. */
struct traffic {
	u64 packets, bytes;
};

/* The outcome of a rate decision for a flow: pith_upf::qos::FlowCount. The first two passed. */
enum fate { YELLOW, GREEN, RED, DROPPED, FATES };
#define PASSED_FATES RED

/* A URR's counter of one direction: rules/usage.rs. */
struct urr_half {
	struct traffic volume;
	u64 first, last; /* times of packets; 0: none */
};

/* What most packets of a session count in one direction: its flow and its URR. One cache line. */
struct tally {
	struct traffic passed[PASSED_FATES];
	struct urr_half urr;
};

#define SESSION_RULES 8
/* The other rules of a session are beside its filters: more than one rule for an origin have filters. */
#define BLOCK_RULES 2
#define BLOCK_METERS 2
/* Flow counters of a session: the first two are in its block, the others in a group of the table `flows`. */
#define SESSION_FLOWS 8
#define BLOCK_FLOWS 2
#define UE_V4 1
#define UE_V6 2
#define UE_NAT 8    /* the kernel translates its IPv4 packets */
#define UE_FRAMED 4 /* there are networks behind it, in `framed` */

/* A session's first rules, one meter for each direction, the counters of a URR, and the counters of its first
 * flows: what a session with two rules needs, and the same for any number of CPUs. Rules are written before
 * they are published; afterwards only `action` and the packet times change. Meters and counters stay. A
 * single rule for packets from tunnels has index UPLINK, a single rule for packets from the data network
 * index DOWNLINK. */
struct session {
	u32 action; /* TO_USER: all packets go to user space; FORWARD: the rules decide */
	u32 flags;
	u32 ue_v4; /* wire */
	u32 matches;
	u64 ue_v6;       /* wire, the prefix */
	u64 last_packet; /* time */
	u64 to_user;     /* time of the last packet given to user space */
	u64 id;
	u8 only[2];      /* by direction: the single rule without filters, or NO_RULE */
	u8 match_count;
	u8 tenant; /* the UE's tenant plus one; 0: no pool contains its address */
	u32 block;  /* the session's own block, which counts even if its rules are elsewhere */
	u32 flows; /* the group of its further flows, in `flows` */
	u32 peer;  /* IPv4 address of the downlink tunnel's peer, wire order; NO_INDEX: IPv6 peer; 0: no tunnel yet */
	struct rule rules[BLOCK_RULES];
	struct meter meters[BLOCK_METERS];          /* up, down */
	struct tally tallies[BLOCK_FLOWS];          /* up, down */
	struct traffic refused[BLOCK_FLOWS][FATES - PASSED_FATES]; /* of the same flows: red, dropped */
};

#define SESSION_MATCHES 16
#define MATCH_ALL 1      /* no filter */
#define MATCH_PROTOCOL 2
#define MATCH_LOCAL_PORTS 4
#define MATCH_REMOTE_PORTS 8
#define MATCH_V4 16 /* an address of that family is named */
#define MATCH_V6 32
#define MATCH_UPLINK_ONLY 64
#define MATCH_DOWNLINK_ONLY 128

struct address {
	u64 high; /* wire; 0 for IPv4 */
	u64 low;  /* wire; an IPv4 address in its first four bytes */
};

/* A filter of a rule; a rule may have several. */
struct match {
	u8 flags;
	u8 rule;
	u8 protocol;
	u8 tos;
	u8 tos_mask;
	u8 reserved[3];
	u16 local_first, local_last;
	u16 remote_first, remote_last;
	struct address local, local_mask;
	struct address remote, remote_mask;
};

/* The filters of a session, and its rules beyond the block's. */
struct matches {
	struct rule rules[SESSION_RULES - BLOCK_RULES];
	struct match of[SESSION_MATCHES];
};

/* A URR outside a session's block. */
struct urr {
	struct urr_half of[2]; /* up, down */
};

struct bounds {
	u64 total, uplink, downlink;
};

#define REPORTED_THRESHOLD 1
#define REPORTED_QUOTA 2

struct limits {
	struct bounds threshold, quota;
	u64 session; /* to which the event is reported */
	u32 urr;
	u32 reported;
};

/* Event for user space: a URR reached a limit, or (SHAPED) a session has a packet that must be queued. */
#define SHAPED NO_LIMIT
struct usage_event {
	u64 session;
	u64 urr;
	u64 uplink, downlink;
	u64 uplink_packets, downlink_packets;
};

/* The counters of a session's further flows. */
struct flow_group {
	struct traffic of[SESSION_FLOWS - BLOCK_FLOWS][FATES];
};

/* Counters of one CPU. `epoch` is incremented when a packet begins and when it ends: after removing a slot
 * from the look-up tables, user space waits until no packet can hold it. */
struct cpu {
	u64 epoch;
	u64 jiffies; /* for which `now` holds */
	u64 now;
	u64 outer_id;
	struct traffic up, down; /* forwarded: from N3 to N6, from N6 to N3 */
	u64 dropped[DROP_REASONS];
	struct traffic n3_rest, n6_rest; /* dropped, or redirected to user space; by receiving side */
	struct traffic across;           /* forwarded from tunnel to tunnel */
	u64 unknown_peer_due;            /* when the next packet of an unknown peer is passed to user space */
	u64 given;                       /* whether the packet in processing came by the cpumap: spread.h */
};

/* A next hop of the kernel's routes and neighbours, cached for ROUTE_LIFE. */
struct route {
	struct address to;
	u64 until;
	u32 device; /* slot in `devices`; NO_INDEX: packets are passed to user space */
	u16 mtu;
	u16 vlan; /* wire; 0: untagged */
	u16 ethernet[6]; /* to, from */
	u8 area;         /* `enum area` of the destination */
	u8 v6;           /* whether `to` is an IPv6 address: a.b.c.d and ::aabb:ccdd:0:0 have the same octets */
	u8 reserved[18];
};

/* An outgoing interface. */
struct port {
	u32 device;
	u32 vlan; /* wire */
	u32 one_sided; /* leads to gNBs and other UPFs only: not for user packets to N6 */
};

/* Metadata before a frame that is redirected to a worker (AF_XDP): the packet's route, which the worker
 * caches. `device` is NO_INDEX if no route is known. Without room for metadata nothing is written. */
#define REDIRECT_MAGIC 0x50697468
struct redirect_info {
	u32 is; /* HANDED */
	u32 peer; /* of the packet's tunnel; wire; 0: no tunnel, the route is for the packet's destination */
	u32 device; /* slot in `devices` */
	u16 mtu;
	u16 vlan; /* wire */
	u16 ethernet[6];
	u32 reserved;
};

/* Longer frames take the kernel's stack. */
#define LONGEST_REDIRECTED 1700

/* An interface whose frames the program handles. */
struct link {
	u64 from; /* upper half: index of the receiving device; lower half: VLAN, wire; 0: untagged */
	u64 to;   /* its MAC address in the first six octets, wire */
};

#define LINKS 64
#define DEVICES 64
#define SOCKETS 256
#define AREAS 65536
#define ROUTE_MTUS 4096
#define N3_ADDRESSES 8

/* Settings, constant while the program is loaded: the verifier removes code that they make unreachable. */
struct settings {
	u64 started;                 /* the clock's time when the datapath started */
	u32 cpus;                    /* entries in `cpus` */
	u32 senders;                 /* CPUs and workers, which take turns in ids of outer headers; a power of two */
	u32 n3_v4[N3_ADDRESSES];     /* wire; packets leave from the first; 0: none */
	struct address n3_v6[N3_ADDRESSES];
	u32 ue_mtu;                  /* longest packet for a UE */
	u32 shapes;                  /* packets above rates are queued in user space; otherwise they are dropped */
	u32 direct_mask;             /* entries of a direct-mapped look-up table minus one */
	u32 pinned;                  /* a predecessor program may be registered */
	u32 hairpin;                 /* packets between UEs are forwarded here */
	u32 link_count;
	struct link links[LINKS]; /* first those of N3 and N9, which receive GTP-U */
	u32 tunnel_links;         /* number of those */
	u32 hz;                   /* kernel ticks a second */
	u32 tcp_timeout;          /* of established connections in connection tracking, milliseconds */
	u32 udp_timeout;
	u32 udp_stream_timeout;
	u32 outer_ecn; /* the ECN field of packets is copied to their outer headers */
	u32 flow_ports; /* the outer source port depends on the packet's flow */
	u32 route_mask; /* entries of `routes` and of `senders` minus one */
	u32 spread;     /* CPUs over which packets of tunnels are spread; 0, 1: the receiving CPU handles them */
	u32 reserved;
};

const volatile struct settings settings;

/* User space sets the number of entries. */
#define SHARED_ARRAY(name, size)                                                                                    \
	struct {                                                                                                    \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                   \
		__uint(map_flags, BPF_F_MMAPABLE);                                                                  \
		__uint(max_entries, 1);                                                                             \
		__uint(key_size, sizeof(u32));                                                                      \
		__uint(value_size, size);                                                                           \
	} name SEC(".maps")

SHARED_ARRAY(sessions, sizeof(struct session));
SHARED_ARRAY(filters, sizeof(struct matches));
SHARED_ARRAY(meters, sizeof(struct meter));
SHARED_ARRAY(usage, sizeof(struct urr));
SHARED_ARRAY(flows, sizeof(struct flow_group));
SHARED_ARRAY(limits, sizeof(struct limits));
SHARED_ARRAY(cpus, sizeof(struct cpu));

/* Look-up of a TEID, a UE's IPv4 address (host order) or the lower half of its IPv6 prefix (host order): the key's low bits select a
 * set of SET_ENTRIES entries, a cache line. An entry contains the key, and in its lower half the slot in `sessions` plus one. TEIDs
 * are random: of 100,000 in 262,144 entries, 17% would find their place taken, and two in a thousand find their set full. That
 * one is only in the hash tables below. */
#define SET_ENTRIES 8
SHARED_ARRAY(direct_teid, sizeof(u64));
SHARED_ARRAY(direct_v4, sizeof(u64));
SHARED_ARRAY(direct_v6, sizeof(u64));

/* Hash tables from a TEID, a UE's IPv4 address (wire) or IPv6 prefix (wire) to a slot in `sessions`. */
#define LOOK_UP(name, key)                                                                                          \
	struct {                                                                                                    \
		__uint(type, BPF_MAP_TYPE_HASH);                                                                    \
		__uint(max_entries, 1);                                                                             \
		__uint(key_size, sizeof(key));                                                                      \
		__uint(value_size, sizeof(u32));                                                                    \
	} name SEC(".maps")

LOOK_UP(by_teid, u32);
LOOK_UP(by_v4, u32);
LOOK_UP(by_v6, u64);

/* Framed routes: the longest matching prefix selects a slot. */
struct network {
	u32 length;     /* prefix length in bits */
	u32 address[4]; /* wire; IPv4-mapped for IPv4 */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct network));
	__uint(value_size, sizeof(u32));
} framed SEC(".maps");

/* Areas of addresses, as in boundary/reach.rs; the longest matching prefix decides. */
enum area {
	OPEN,
	CLOSED,     /* to all UEs */
	CLOSED_MAY, /* to all UEs, but a permit may match: user space decides */
	TENANT      /* and those that follow: to UEs of other tenants than that number */
};
#define AREA 0xff   /* the part of an entry that is one */
#define PEER 0x100  /* GTP-U is accepted from there */
#define HERE 0x200  /* in a pool of this UPF: a packet from outside with such a source is forged */

struct area_key {
	u32 length;     /* prefix length in bits, including the family */
	u32 family;     /* 4 or 6 */
	u32 address[4]; /* wire; an IPv4 address is the first */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AREAS);
	__uint(key_size, sizeof(struct area_key));
	__uint(value_size, sizeof(u32));
} areas SEC(".maps");

/* The MTU of a network's IPv4 route, or 0: bpf_fib_lookup() reports only one that is locked. */
struct route_mtu_key {
	u32 length; /* bits of the address */
	u32 v4;     /* wire */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ROUTE_MTUS);
	__uint(key_size, sizeof(struct route_mtu_key));
	__uint(value_size, sizeof(u32));
} route_mtus SEC(".maps");

/* Not 0 while user space decides on packets from and to N6: the first while `areas` lacks entries, as it had no room; the second while
 * the host has rules that the program does not know. */
#define SWITCHES 2
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SWITCHES);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} incomplete SEC(".maps");

/* Caches of a CPU: an address is in one of two adjacent entries. User space sets their number. */
#define CACHE(name, value)                                                                                          \
	struct {                                                                                                    \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                                            \
		__uint(max_entries, 2);                                                                             \
		__uint(key_size, sizeof(u32));                                                                      \
		__uint(value_size, sizeof(value));                                                                  \
	} name SEC(".maps")

CACHE(routes, struct route);

/* The area of a source address from the data network; cached for ROUTE_LIFE. */
struct sender {
	struct address is;
	u64 until;
	u32 area; /* with HERE, if it is a UE's */
	u32 v6;
};

CACHE(senders, struct sender);

/* By interface index. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DEVICES);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct port));
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, DEVICES);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} devices SEC(".maps");

/* AF_XDP sockets of the workers, and the socket of each queue; both empty without AF_XDP. */
struct queue {
	u32 device; /* interface index */
	u32 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SOCKETS);
	__uint(key_size, sizeof(struct queue));
	__uint(value_size, sizeof(u32));
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, SOCKETS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} sockets SEC(".maps");

/* The program of the previous process: it handles the packets of sessions that are unknown here. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} predecessor SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* Hides a value's derivation from the compiler: the verifier does not follow partial pointers, nor permits arithmetic with a
 * pointer before it is compared with null. */
#define SCALAR(value) asm volatile("" : "+r"(value))

INLINE void *slot(void *map, u32 index)
{
	return bpf_map_lookup_elem(map, &index);
}

INLINE u32 action_of(const struct rule *rule)
{
	return rule->action & 0xf;
}

INLINE u32 flow_of(const struct rule *rule)
{
	return rule->action >> 4;
}

/* Counts in a counter that only this CPU writes. */
INLINE void count_traffic(struct traffic *traffic, u32 bytes)
{
	traffic->packets++;
	traffic->bytes += bytes;
}

/* Counts in a counter that other CPUs and workers write, too. */
INLINE void count_shared(struct traffic *traffic, u32 bytes)
{
	__sync_fetch_and_add(&traffic->packets, 1);
	__sync_fetch_and_add(&traffic->bytes, bytes);
}

_Static_assert(sizeof(struct rule) == CACHE_LINE && sizeof(struct meter) == CACHE_LINE, "one cache line");
_Static_assert(sizeof(struct urr) == CACHE_LINE && sizeof(struct limits) == CACHE_LINE, "one cache line");
_Static_assert(sizeof(struct tally) == CACHE_LINE && sizeof(struct flow_group) % CACHE_LINE == 0, "whole cache lines");
_Static_assert(sizeof(struct session) == 8 * CACHE_LINE, "the memory of a session");
_Static_assert(sizeof(struct matches) % CACHE_LINE == 0, "rules start cache lines");
_Static_assert(sizeof(struct cpu) % CACHE_LINE == 0 && sizeof(struct route) == CACHE_LINE, "whole cache lines");
_Static_assert(sizeof(struct link) == 16, "no padding");
_Static_assert(sizeof(struct redirect_info) == 32, "the most that all kernels let stand before a frame");
