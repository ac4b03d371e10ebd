/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The fast path of the UPF: one program for every interface of N3 and N6.
 *
 *   frame ─▶ G-PDU to us? ─yes─▶ session by TEID ─▶ rule ─▶ source is the UE's? ─▶ route ─▶ gates, quota, rates ─▶ count
 *                │ no                                            │                  │        └▶ tunnel off ─▶ redirect
 *                │                        into another tunnel: across.h ◀── to a UE ┘
 *                └─▶ session by destination ─▶ rule ─▶ route to the gNB ─▶ gates, quota, rates ─▶ count
 *                                                                          └▶ tunnel on ─▶ redirect
 *
 * Frames that are not addressed to a configured interface, by VLAN and destination MAC, are passed to the kernel, except
 * GTP-U. A packet is either handled here (redirected or dropped, and counted) or passed on unchanged and uncounted. */
#include "downlink.h"
#include "spread.h"

/* `given`: whether the packet came by the cpumap. */
INLINE int handle(struct xdp_md *ctx, u32 frame, u64 given)
{
	u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = slot(&cpus, number);
	if (!cpu)
		return XDP_PASS;
	/* A locked instruction: no later load is executed before user space sees this store. */
	__sync_fetch_and_add(&cpu->epoch, 1);
	cpu->given = given;
	struct path path = {
		.cpu = cpu,
		.number = number,
		.now = time_of(cpu),
	};
	int verdict = uplink(ctx, &path, frame);
	if (verdict == NOT_UPLINK)
		verdict = frame & FRAME_OURS ? downlink(ctx, &path, frame) : XDP_PASS;
	LEAVE(cpu);
	return verdict;
}

SEC("xdp")
int pith_upf(struct xdp_md *ctx)
{
	u32 frame = read_frame(ctx);
	u32 is_tunnels = frame & FRAME_TUNNELS && frame & FRAME_OURS;
	int verdict = settings.spread > 1 && is_tunnels ? spread_uplink(ctx, frame) : NOT_UPLINK;
	if (verdict == NOT_UPLINK)
		verdict = handle(ctx, frame, 0);
	if (verdict != UNKNOWN_SESSION)
		return verdict;
	if (settings.pinned)
		bpf_tail_call(ctx, &predecessor, 0);
	return XDP_PASS;
}

/* On the CPU that another one gave a packet. A predecessor needs no call: only packets of known tunnels are given away. */
SEC("xdp/cpumap")
int pith_upf_spread(struct xdp_md *ctx)
{
	u32 frame = read_frame(ctx);
	int verdict = handle(ctx, frame, 1);
	if (verdict != XDP_PASS && verdict != UNKNOWN_SESSION)
		return verdict;
	drop_checksum(ctx, frame);
	return XDP_PASS;
}

/* Only helpers that the kernel offers to GPL programs need this; the text is under Apache-2.0 as well. */
char _license[] SEC("license") = "Dual BSD/GPL";
