/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the program shares with user space: src/xdp/tables.rs has the same layouts, and checks sizes when it loads.
 * Numbers are in host order unless they say 'wire'. */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define CACHE_LINE 64
#define INLINE static __always_inline
/* A function that the verifier looks at once, whatever calls it. It takes no more than five arguments, and
 * pointers only to what may be null. */
#define APART __noinline

/* An index that names nothing; a bound that is none. */
#define NO_INDEX 0xffffffffu
/* A meter or counter in the block of a session, whose slot is in the other bits: what most packets need lies
 * together. The others have tables of their own. */
#define HOME 0x80000000u
#define NO_LIMIT 0xffffffffffffffffull
#define NO_RULE 0xff

enum direction { UPLINK, DOWNLINK };

/* What becomes of a packet. Whatever XDP does not do itself is user space's: the kernel hands it to the
 * GTP-U socket or the TUN interface, where the portable path has the same rules. */
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
	DROP_REASONS
};

#define RULE_OPEN 1      /* all gates are open */
#define RULE_TUNNEL 2    /* it matches packets of tunnel `teid`; otherwise those of the data network */
#define RULE_HAS_QFI 4   /* packets that leave by tunnel are marked with `qfi` */
#define RULE_DOWNLINK 8  /* its packets go to the UE, wherever they come from */
#define RULE_ONWARD 16   /* they come by a tunnel and leave by another */
#define RULE_PEER_V6 32  /* the far end's address is IPv6 */

#define RULE_METERS 3
#define RULE_URRS 2

/* A PDR with its FAR, QERs and URRs: one cache line. */
struct rule {
	u8 action; /* in the lower half; in the upper half, which of the session's flows its packets are of */
	u8 flags;
	u8 qfi;
	u8 dscp;
	u32 teid;
	u64 qfis;        /* a bit for each QFI that matches; all: any, or none */
	u32 tunnel_teid; /* of the far end */
	u32 peer[4];     /* of the far end; wire; an IPv4 address in the first */
	u32 meters[RULE_METERS];
	u32 urrs[RULE_URRS];
	u32 limits[RULE_URRS];
};

/* Token bucket in the form of its virtual schedule: pith_upf::qos::Bucket. Times in sixteenths of a
 * nanosecond. */
struct bucket {
	u64 rate; /* bits per second; NO_LIMIT: there is none */
	u64 burst;
	u64 full_at;
	u64 per_byte; /* what a byte takes, in 65,536ths */
};

/* A QER in one direction: pith_upf::qos::Meter. One cache line. */
struct meter {
	struct bucket peak, committed;
};

#define SESSION_RULES 8
#define HOME_METERS 2
/* Flows of a session: the first two are counted in its block, others in a group of the table `flows`. */
#define SESSION_FLOWS 8
#define HOME_FLOWS 2
#define UE_V4 1
#define UE_V6 2
#define UE_FRAMED 4 /* there are networks behind it, in `framed` */

/* A session's rules, a meter each way, the places of a URR, and what its first flows were given. Rules are filled in before they are published,
 * and then only user space's `action` and what packets leave behind change; meters and places stay.
 * The only rule for what comes by tunnel has the place UPLINK, that for what comes from the data network DOWNLINK. */
struct session {
	u32 action; /* TO_USER: all packets; FORWARD: as its rules say */
	u32 flags;
	u32 ue_v4; /* wire */
	u32 matches;
	u64 ue_v6;       /* wire, the prefix */
	u64 last_packet; /* time */
	u64 to_user;     /* time of the last packet given to user space */
	u64 id;
	u8 only[2];      /* by tunnel, from the data network: the rule, where it is one without filters; or NO_RULE */
	u8 match_count;
	u8 tenant; /* whose UE it is, plus one; 0: no pool has its address */
	u32 home;  /* the slot of its own block, in which things are counted wherever its rules are */
	u32 flows; /* the group of its further flows, in `flows` */
	u32 peer;  /* IPv4 address of the downlink tunnel's peer, wire order; NO_INDEX: IPv6 peer; 0: no tunnel yet */
	struct rule rules[SESSION_RULES];
	struct meter meters[HOME_METERS]; /* up, down */
	/* struct place places[settings.places]; */
	/* struct given givens[HOME_FLOWS][settings.cpus]; */
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

/* A filter of a rule. A rule with many filters has many of these. */
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

struct matches {
	struct match of[SESSION_MATCHES];
};

/* One CPU's or one worker's share of a URR's counters: rules/usage.rs. */
struct place {
	u64 uplink, downlink;
	u64 uplink_packets, downlink_packets;
	u64 first, last;
	u64 reserved[2];
};

/* In the order of `struct volume`'s sums. */
struct bounds {
	u64 total, uplink, downlink;
};

#define TOLD_THRESHOLD 1
#define TOLD_QUOTA 2

struct limits {
	struct bounds threshold, quota;
	u64 session; /* whom to tell of */
	u32 urr;
	u32 told;
};

/* What user space is told when a URR comes up to a limit; or, with SHAPED, when a session has a packet that
 * has to wait. */
#define SHAPED NO_LIMIT
struct usage_event {
	u64 session;
	u64 urr;
	u64 uplink, downlink;
	u64 uplink_packets, downlink_packets;
};

struct traffic {
	u64 packets, bytes;
};

/* What became of a packet that its flow's rates were asked for: pith_upf::qos::FlowCount. The first two passed. */
enum fate { YELLOW, GREEN, RED, DROPPED, FATES };

/* What one CPU gave a flow. */
struct given {
	struct traffic of[FATES];
};

/* What one CPU counts. `epoch` grows when a packet comes and when it is done with: user space, having
 * taken a slot out of the look-up tables, waits until no packet can know of it. */
struct cpu {
	u64 epoch;
	u64 jiffies; /* for which `now` holds */
	u64 now;
	u64 outer_id;
	struct traffic up, down; /* sent on: from N3 to N6, and back */
	u64 dropped[DROP_REASONS];
	struct traffic n3_rest, n6_rest; /* dropped, or handed to user space; by where they came in */
	struct traffic across;           /* from a tunnel into another */
	u64 reserved[4];
};

/* Where the system's routing table and neighbours send a packet; remembered for ROUTE_LIFE. */
struct route {
	struct address to;
	u64 until;
	u32 device; /* slot in `devices`; NO_INDEX: the packet is user space's */
	u16 mtu;
	u16 vlan; /* wire; 0: untagged */
	u16 ethernet[6]; /* to, from */
	u8 area;         /* whose the destination is */
	u8 reserved[19];
};

/* An interface that packets may leave by. */
struct port {
	u32 device;
	u32 vlan; /* wire */
	u32 one_sided; /* it leads to radios and other UPFs only: users' packets don't leave by it */
};

/* Before a frame that a worker has to have waiting (AF_XDP): where its packet will leave to. The worker learns
 * routes by it; where none is known, `device` is NO_INDEX, and where a driver has no room for this, nothing is
 * written. */
#define HANDED 0x50697468
struct handed {
	u32 is; /* HANDED */
	u32 peer; /* of the tunnel that it goes into; wire; 0: it goes to the packet's destination */
	u32 device; /* slot in `devices` */
	u16 mtu;
	u16 vlan; /* wire */
	u16 ethernet[6];
	u32 reserved;
};

/* Frames longer than that go by the kernel. */
#define LONGEST_HANDED 1700

/* An interface whose frames are the program's. */
struct link {
	u64 from; /* the index of the device that frames come in by, in the upper half; the VLAN, wire; 0: untagged */
	u64 to;   /* its link address in the first six octets, wire */
};

#define LINKS 64
#define ROUTES 1024
#define DEVICES 64
#define SOCKETS 256
#define AREAS 65536
#define N3_ADDRESSES 8

/* Settings, fixed while the program is loaded: the verifier takes out what they make unreachable. */
struct settings {
	u64 started;                 /* the clock's time when the datapath started */
	u32 cpus;                    /* entries in `cpus`, and the first places of a URR */
	u32 places;                  /* of a URR: a CPU's each, then a worker's each */
	u32 n3_v4[N3_ADDRESSES];     /* wire; packets leave from the first; 0: none */
	struct address n3_v6[N3_ADDRESSES];
	u32 ue_mtu;                  /* longest packet for a UE */
	u32 shapes;                  /* what exceeds rates waits in user space; otherwise it is dropped */
	u32 leads;                   /* entries in a table of leads, less one: a mask */
	u32 pinned;                  /* there may be a program that was attached before */
	u32 hairpin;                 /* packets between UEs go past the kernel */
	u32 link_count;
	struct link links[LINKS]; /* first those where radios and other UPFs are: GTP-U comes by them */
	u32 tunnel_links;         /* how many those are */
	u32 reserved;
};

const volatile struct settings settings;

/* User space sets how many entries these have, and the size of a URR's places and of a group of flows. */
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
SHARED_ARRAY(usage, sizeof(struct place));
SHARED_ARRAY(flows, sizeof(struct given));
SHARED_ARRAY(limits, sizeof(struct limits));
SHARED_ARRAY(cpus, sizeof(struct cpu));

/* The short way from a TEID, a UE's IPv4 address (host order), the upper end of its IPv6 prefix (host order) to a
 * slot in `sessions`: by the key's low bits. A lead is the key, and the slot plus one below. Where two keys have one
 * place, the later is in the tables below alone. */
SHARED_ARRAY(lead_teid, sizeof(u64));
SHARED_ARRAY(lead_v4, sizeof(u64));
SHARED_ARRAY(lead_v6, sizeof(u64));

/* Which slot in `sessions` a TEID, a UE's IPv4 address (wire), a UE's IPv6 prefix (wire) leads to. */
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

/* Networks behind UEs: the longest that has an address leads to a slot. */
struct network {
	u32 length;     /* bits that count */
	u32 address[4]; /* wire; of IPv4 as mapped into IPv6 */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct network));
	__uint(value_size, sizeof(u32));
} framed SEC(".maps");

/* Whose addresses are, as boundary/reach.rs has it; the longest network that has one decides. */
enum area {
	OPEN,
	CLOSED,     /* to all UEs */
	CLOSED_MAY, /* to all UEs, but there are permits: user space knows which */
	TENANT      /* and those that follow: to UEs of other tenants than that number */
};
#define AREA 0xff   /* the part of an entry that is one */
#define PEER 0x100  /* GTP-U is accepted from there */

struct place_of {
	u32 length;     /* bits that count, those of the family included */
	u32 family;     /* 4 or 6 */
	u32 address[4]; /* wire; of IPv4 the first */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AREAS);
	__uint(key_size, sizeof(struct place_of));
	__uint(value_size, sizeof(u32));
} areas SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ROUTES);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct route));
} routes SEC(".maps");

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

/* Workers' sockets, and the slot of each queue's; both empty where there is no AF_XDP. */
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

/* The program of the process before this one: it has the packets of sessions that are not known here. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} predecessor SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} events SEC(".maps");

/* Keeps the compiler from reckoning with a pointer's parts, which the verifier does not follow. */
#define SCALAR(value) asm volatile("" : "+r"(value))

INLINE void *slot(void *map, u32 index)
{
	return bpf_map_lookup_elem(map, &index);
}

/* The places of the URR in a session's block. */
INLINE struct place *places_in(struct session *session)
{
	return (struct place *)(session + 1);
}

/* What the session's first flows were given: by each CPU the first, then the second. */
INLINE struct given *givens_in(struct session *session)
{
	return (struct given *)(places_in(session) + settings.places);
}

INLINE u32 action_of(const struct rule *rule)
{
	return rule->action & 0xf;
}

INLINE u32 flow_of(const struct rule *rule)
{
	return rule->action >> 4;
}

INLINE void count_traffic(struct traffic *traffic, u32 bytes)
{
	traffic->packets++;
	traffic->bytes += bytes;
}

_Static_assert(sizeof(struct rule) == CACHE_LINE && sizeof(struct meter) == CACHE_LINE, "one cache line");
_Static_assert(sizeof(struct place) == CACHE_LINE && sizeof(struct limits) == CACHE_LINE, "one cache line");
_Static_assert(sizeof(struct given) == CACHE_LINE, "one cache line");
_Static_assert(sizeof(struct session) == (1 + SESSION_RULES + HOME_METERS) * CACHE_LINE,
	       "rules and meters start cache lines");
_Static_assert(sizeof(struct cpu) % CACHE_LINE == 0 && sizeof(struct route) == CACHE_LINE, "whole cache lines");
_Static_assert(sizeof(struct link) == 16, "no padding");
_Static_assert(sizeof(struct handed) == 32, "the most that all kernels let stand before a frame");
