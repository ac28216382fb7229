// SPDX-License-Identifier: GPL-2.0
/*
 * The wire between two ports: its rate, what it loses, and what a broken cipher engine puts on it.
 *
 * A burst (TSO) crosses it whole, as between two ends of a veth, unless frames are to be lost or corrupted: then it is
 * cut first, so that single frames are hit.
 */
#include <linux/etherdevice.h>

#include "nic.h"

/* Shorter frames are acknowledgements and the like; those are not lost. */
#define LARGE_FRAME_BYTES 200

/* What may wait for the wire before the queue is stopped. */
#define WIRE_QUEUE_NS (200 * NSEC_PER_USEC)

static enum hrtimer_restart wire_is_free(struct hrtimer *timer)
{
	struct lnic_port *port = container_of(timer, struct lnic_port, wire_timer);

	netif_tx_wake_all_queues(port->dev);
	return HRTIMER_NORESTART;
}

void lnic_wire_init(struct lnic_port *port)
{
	spin_lock_init(&port->wire_lock);
	lnic_hrtimer_setup(&port->wire_timer, wire_is_free);
}

/* Keeps the wire busy for a while, and stops the queue if there is much to wait for. */
static void occupy(struct lnic_port *port, struct lnic_queue *queue, u64 ns)
{
	u64 now = ktime_get_ns();
	u64 ahead;

	spin_lock(&port->wire_lock);
	port->wire_free_ns = max(port->wire_free_ns, now) + ns;
	ahead = port->wire_free_ns - now;
	if (queue && ahead > WIRE_QUEUE_NS) {
		netif_stop_subqueue(port->dev, queue->index);
		hrtimer_start(&port->wire_timer, ns_to_ktime(ahead - WIRE_QUEUE_NS / 2), HRTIMER_MODE_REL);
	}
	spin_unlock(&port->wire_lock);
}

/* Time in which the adapter sends nothing because it has something else to do. */
void lnic_wire_hold(struct lnic_port *port, u64 ns)
{
	occupy(port, NULL, ns);
}

/* Whether this one is the Nth since the last. */
static bool is_nth(atomic_t *counter, int nth)
{
	return nth > 0 && (unsigned int)atomic_inc_return(counter) % nth == 0;
}

static void corrupt(struct sk_buff *skb)
{
	u8 last;

	if (!skb_copy_bits(skb, skb->len - 1, &last, 1)) {
		last ^= 1;
		skb_store_bits(skb, skb->len - 1, &last, 1);
	}
}

static void send_frame(struct lnic_port *port, struct lnic_queue *queue, struct sk_buff *skb, bool sealed)
{
	struct net_device *to = port->peer->dev;
	int rate_mbps = READ_ONCE(lnic_model.rate_mbps);
	unsigned int bytes = skb->len;
	bool large = bytes > LARGE_FRAME_BYTES;

	lnic_count(queue, LNIC_TX_PACKETS, skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1);
	lnic_count(queue, LNIC_TX_BYTES, bytes);
	if (rate_mbps > 0)
		occupy(port, queue, div_u64((u64)bytes * 8 * 1000, rate_mbps));
	if (large && is_nth(&port->frames_to_lose, READ_ONCE(lnic_model.drop_nth))) {
		lnic_count(queue, LNIC_WIRE_LOST, 1);
		kfree_skb(skb);
		return;
	}
	if (large && sealed && is_nth(&port->frames_to_corrupt, READ_ONCE(lnic_model.corrupt_nth))) {
		lnic_count(queue, LNIC_WIRE_CORRUPTED, 1);
		corrupt(skb);
	}
	skb_orphan(skb);
	skb_record_rx_queue(skb, queue->index % to->real_num_rx_queues);
	if (dev_forward_skb(to, skb) == NET_RX_SUCCESS) {
		lnic_count(queue, LNIC_DELIVERED_PACKETS, 1);
		lnic_count(queue, LNIC_DELIVERED_BYTES, bytes);
	} else {
		lnic_count(queue, LNIC_UNDELIVERED, 1);
	}
}

/* Sends what has no plaintext in it any more: `sealed` says that records in it were sealed here. */
void lnic_wire_send(struct lnic_port *port, struct lnic_queue *queue, struct sk_buff *skb, bool sealed)
{
	bool cut = READ_ONCE(lnic_model.drop_nth) > 0 || READ_ONCE(lnic_model.corrupt_nth) > 0;
	struct sk_buff *frames, *next;

	if (!cut || !skb_is_gso(skb)) {
		send_frame(port, queue, skb, sealed);
		return;
	}
	frames = skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA);
	if (IS_ERR_OR_NULL(frames)) {
		lnic_count(queue, LNIC_TX_DROPPED, 1);
		kfree_skb(skb);
		return;
	}
	consume_skb(skb);
	skb_list_walk_safe(frames, skb, next) {
		skb_mark_not_on_list(skb);
		send_frame(port, queue, skb, sealed);
	}
}
