/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The fast path with NAT, for kernels whose connection tracking has functions for BPF. */
#define NAT 1
#include "upf.bpf.c"
