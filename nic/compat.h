/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between the kernels that this builds for: Linux 6.1 and later. */
#ifndef LINERATE_NIC_COMPAT_H
#define LINERATE_NIC_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>
#include <net/tls.h>

/* Its own header since 6.5. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

/* By packet since 6.6. The older one, by socket, does not accept that there is none. */
static inline bool lnic_is_offloaded(const struct sk_buff *skb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return tls_is_skb_tx_device_offloaded(skb);
#else
	return skb->sk && tls_is_sk_tx_device_offloaded(skb->sk);
#endif
}

/* One call since 6.13; the two it replaced are gone since 6.15. */
static inline void lnic_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = function;
#endif
}

#endif
