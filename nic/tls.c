// SPDX-License-Identifier: GPL-2.0
/*
 * Connections whose records this port seals: set-up and end, the frames in between, resynchronisation. Transmission
 * only, and TLS 1.2 with AES-GCM only, which is what the kernel's core hands to a device.
 *
 * A frame is a piece of the TCP stream, and need not begin or end with a record. An adapter keeps the cipher's state
 * from frame to frame; this one keeps the last record that it sealed, whole, and takes each frame's bytes from there.
 * What a frame holds is never sent unsealed: one that cannot be sealed is dropped, and TCP sends it again.
 */
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "nic.h"
#include "seal.h"

struct flow {
	spinlock_t lock;		/* all below; frames of a connection may be on two queues */
	struct lnic_cipher cipher;
	u32 start_seq;			/* of TCP: what is before it was sealed by others */
	u32 next_seq;			/* where the next frame begins, if it is in order */
	u8 *record;			/* LNIC_RECORD_BYTES, of which record_bytes are valid */
	u32 record_seq;
	unsigned int record_bytes;
};

static struct flow **place_of(struct tls_context *context)
{
	return __tls_driver_ctx(context, TLS_OFFLOAD_CTX_DIR_TX);
}

static void flow_free(struct flow *flow)
{
	lnic_cipher_free(&flow->cipher);
	if (flow->record) {
		memzero_explicit(flow->record, LNIC_RECORD_BYTES);
		free_pages_exact(flow->record, LNIC_RECORD_BYTES);
	}
	kfree(flow);
}

/* Frees what there is of it if a step fails. */
static struct flow *flow_new(struct lnic_port *port, const struct tls_crypto_info *info, u32 start_seq)
{
	struct flow *flow = lnic_setup_step(1) ? NULL : kzalloc(sizeof(*flow), GFP_KERNEL);
	int err;

	if (!flow)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&flow->lock);
	flow->start_seq = start_seq;
	flow->next_seq = start_seq;
	/* Not from a power of two: 20 KiB instead of 32. */
	flow->record = lnic_setup_step(2) ? NULL : alloc_pages_exact(LNIC_RECORD_BYTES, GFP_KERNEL);
	err = flow->record ? lnic_cipher_init(&flow->cipher, info) : -ENOMEM;
	err = err ?: lnic_setup_step(5) ?: lnic_firmware_set_up(port);
	if (err) {
		flow_free(flow);
		return ERR_PTR(err);
	}
	return flow;
}

/* Takes one of max_flows places. */
static bool take_place(struct lnic_port *port)
{
	if (atomic_inc_return(&port->flows) <= READ_ONCE(lnic_model.max_flows))
		return true;
	atomic_dec(&port->flows);
	return false;
}

static int add(struct net_device *dev, struct sock *sk, enum tls_offload_ctx_dir direction,
	       struct tls_crypto_info *info, u32 start_seq)
{
	struct lnic_port *port = netdev_priv(dev);
	struct flow *flow;

	if (direction != TLS_OFFLOAD_CTX_DIR_TX || !lnic_cipher_knows(info)) {
		lnic_count_port(port, LNIC_SETUP_UNSUPPORTED, 1);
		return -EOPNOTSUPP;
	}
	if (!take_place(port)) {
		lnic_count_port(port, LNIC_SETUP_NO_ROOM, 1);
		return -ENOSPC;
	}
	flow = flow_new(port, info, start_seq);
	if (IS_ERR(flow)) {
		atomic_dec(&port->flows);
		lnic_count_port(port, PTR_ERR(flow) == -ETIMEDOUT ? LNIC_SETUP_TIMEOUT : LNIC_SETUP_FAILED, 1);
		return PTR_ERR(flow);
	}
	*place_of(tls_get_ctx(sk)) = flow;
	lnic_count_port(port, LNIC_TLS_CTX, 1);
	return 0;
}

/* The core calls this when no frame can be under way any more. */
static void del(struct net_device *dev, struct tls_context *context, enum tls_offload_ctx_dir direction)
{
	struct lnic_port *port = netdev_priv(dev);
	struct flow **place = place_of(context);

	flow_free(*place);
	*place = NULL;
	atomic_dec(&port->flows);
	lnic_count_port(port, LNIC_TLS_DEL, 1);
	lnic_firmware_tear_down(port);
}

/* What was asked for when a frame came out of order: `seq`, where the next record begins, is the new place. */
static int resync(struct net_device *dev, struct sock *sk, u32 seq, u8 *record_sequence,
		  enum tls_offload_ctx_dir direction)
{
	struct lnic_port *port = netdev_priv(dev);
	struct flow *flow = *place_of(tls_get_ctx(sk));

	if (direction != TLS_OFFLOAD_CTX_DIR_TX)
		return -EOPNOTSUPP;
	lnic_firmware_resync(port);
	spin_lock_bh(&flow->lock);
	flow->next_seq = seq;
	flow->record_bytes = 0;
	spin_unlock_bh(&flow->lock);
	lnic_count_port(port, LNIC_TLS_RESYNC, 1);
	return 0;
}

const struct tlsdev_ops lnic_tls_ops = {
	.tls_dev_add = add,
	.tls_dev_del = del,
	.tls_dev_resync = resync,
};

static bool has(const struct flow *flow, u32 seq)
{
	return flow->record_bytes && !before(seq, flow->record_seq) &&
	       before(seq, flow->record_seq + flow->record_bytes);
}

/* Copies a record, in the clear, as an adapter reads it from the host's memory. */
static int copy_record(struct flow *flow, const struct tls_record_info *info)
{
	unsigned int bytes = 0;
	int i;

	for (i = 0; i < info->num_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];

		if (bytes + skb_frag_size(frag) > LNIC_RECORD_BYTES)
			return -EMSGSIZE;
		memcpy(flow->record + bytes, skb_frag_address(frag), skb_frag_size(frag));
		bytes += skb_frag_size(frag);
	}
	if (bytes != info->len || bytes < LNIC_OVERHEAD_BYTES)
		return -EMSGSIZE;
	flow->record_bytes = bytes;
	return 0;
}

/* Reads the record that holds `seq`. -ENOENT: that is from before the adapter had the connection. */
static int read_record(struct flow *flow, struct tls_offload_context_tx *context, u32 seq, u64 *sequence)
{
	struct tls_record_info *info;
	unsigned long flags;
	int err;

	/* What is acknowledged is freed under this lock. */
	spin_lock_irqsave(&context->lock, flags);
	info = tls_get_record(context, seq, sequence);
	if (!info) {
		err = -ENODATA;
	} else if (tls_record_is_start_marker(info)) {
		err = -ENOENT;
	} else {
		err = copy_record(flow, info);
		flow->record_seq = tls_record_start_seq(info);
	}
	spin_unlock_irqrestore(&context->lock, flags);
	return err;
}

/* Sees to it that the flow has the sealed record that holds `seq`. */
static int seal_record(struct lnic_queue *queue, struct flow *flow, struct tls_offload_context_tx *context, u32 seq)
{
	u64 sequence;
	int err;

	if (has(flow, seq))
		return 0;
	flow->record_bytes = 0;
	err = read_record(flow, context, seq, &sequence);
	if (err)
		return err;
	err = lnic_seal(&flow->cipher, flow->record, flow->record_bytes, sequence);
	if (err) {
		flow->record_bytes = 0;
		return err;
	}
	lnic_count(queue, LNIC_TLS_RECORDS, 1);
	return 0;
}

/* Puts ciphertext where `to` has plaintext: `bytes` of the stream from `seq` on, behind its headers. */
static int seal_frame(struct lnic_queue *queue, struct flow *flow, struct tls_offload_context_tx *context,
		      struct sk_buff *to, unsigned int headers_bytes, u32 seq, unsigned int bytes)
{
	unsigned int done = 0;

	while (done < bytes) {
		unsigned int offset, piece;
		int err = seal_record(queue, flow, context, seq + done);

		if (err)
			return err;
		offset = seq + done - flow->record_seq;
		piece = min(bytes - done, flow->record_bytes - offset);
		skb_store_bits(to, headers_bytes + done, flow->record + offset, piece);
		done += piece;
	}
	return 0;
}

/*
 * mlx5's way to seal a frame out of order: the record is read again from its beginning, to get the cipher's state to
 * where the frame begins. That costs the bus bandwidth, and the wire has to wait.
 */
static void count_reread(struct lnic_port *port, struct lnic_queue *queue, struct flow *flow, u32 seq)
{
	u32 before_bytes = seq - flow->record_seq;

	lnic_count(queue, LNIC_TLS_RESYNC_BYTES, before_bytes);
	lnic_count(queue, LNIC_TLS_DUMP_BYTES, before_bytes);
	lnic_count(queue, LNIC_TLS_DUMP_PACKETS, DIV_ROUND_UP(before_bytes, port->dev->mtu));
	lnic_wire_hold(port, (u64)max(READ_ONCE(lnic_model.resync_us), 0) * NSEC_PER_USEC);
}

/* A copy of the frame in which records are sealed, or NULL; says in *why what to count. */
static struct sk_buff *sealed_copy(struct lnic_port *port, struct lnic_queue *queue, struct flow *flow,
				   const struct sk_buff *skb, enum lnic_queue_counter *why)
{
	struct tls_offload_context_tx *context = tls_offload_ctx_tx(tls_get_ctx(skb->sk));
	unsigned int headers_bytes = skb_tcp_all_headers(skb);
	unsigned int bytes = skb->len - headers_bytes;
	u32 seq = ntohl(tcp_hdr(skb)->seq);
	bool out_of_order = seq != flow->next_seq;
	struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);
	int err;

	*why = LNIC_TLS_DROP_NO_MEMORY;
	if (!copy)
		return NULL;
	if (out_of_order)
		flow->record_bytes = 0;
	err = seal_record(queue, flow, context, seq);
	if (!err && out_of_order)
		count_reread(port, queue, flow, seq);
	err = err ?: seal_frame(queue, flow, context, copy, headers_bytes, seq, bytes);
	if (err) {
		/* Plaintext of this connection from before the adapter had it, or a record that is not there any more. */
		*why = err == -ENOENT ? LNIC_TLS_DROP_BYPASS_REQ : LNIC_TLS_DROP_NO_SYNC_DATA;
		flow->record_bytes = 0;
		kfree_skb(copy);
		return NULL;
	}
	flow->next_seq = seq + bytes;
	copy->decrypted = 0;
	lnic_count(queue, LNIC_TLS_ENCRYPTED_PACKETS, skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1);
	lnic_count(queue, LNIC_TLS_ENCRYPTED_BYTES, bytes);
	return copy;
}

/* The core's own software seals it; what comes back is not to be touched again. */
static struct sk_buff *fall_back(struct lnic_queue *queue, struct sk_buff *skb)
{
	struct sk_buff *sealed = tls_encrypt_skb(skb);

	lnic_count(queue, LNIC_TLS_FALLBACK, 1);
	if (sealed)
		sealed->decrypted = 0;
	return sealed;
}

/*
 * nfp's way: the adapter's state stays where it was, software seals the frame, and the core is asked for a new place
 * if the stream went ahead (a retransmission goes back, and the next frame is where it was expected).
 */
static bool goes_to_software(const struct flow *flow, const struct sk_buff *skb, u32 seq)
{
	if (!READ_ONCE(lnic_model.resync_by_software))
		return false;
	if (tls_offload_tx_resync_pending(skb->sk))
		return true;
	if (seq == flow->next_seq)
		return false;
	if (after(seq, flow->next_seq))
		tls_offload_tx_resync_request(skb->sk, seq, flow->next_seq);
	return true;
}

static struct sk_buff *transmit_offloaded(struct lnic_port *port, struct lnic_queue *queue, struct flow *flow,
					  struct sk_buff *skb, bool *sealed)
{
	u32 seq = ntohl(tcp_hdr(skb)->seq);
	enum lnic_queue_counter why;
	struct sk_buff *copy;

	spin_lock(&flow->lock);
	if (seq != flow->next_seq)
		lnic_count(queue, LNIC_TLS_OOO, 1);
	if (goes_to_software(flow, skb, seq)) {
		spin_unlock(&flow->lock);
		return fall_back(queue, skb);
	}
	copy = sealed_copy(port, queue, flow, skb, &why);
	spin_unlock(&flow->lock);
	if (!copy) {
		lnic_count(queue, why, 1);
		kfree_skb(skb);
		return NULL;
	}
	consume_skb(skb);
	*sealed = true;
	return copy;
}

/*
 * A frame that the core marked as plaintext, of a connection that no adapter has. When the core takes a connection away
 * from its adapter it has software seal the frames instead, which leaves the mark; whatever else bears it is in the
 * clear, and is not let out.
 */
static struct sk_buff *transmit_orphaned(struct lnic_queue *queue, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	if (sk && sk_fullsock(sk) && READ_ONCE(sk->sk_validate_xmit_skb)) {
		lnic_count(queue, LNIC_TLS_FALLBACK, 1);
		skb->decrypted = 0;
		return skb;
	}
	lnic_count(queue, LNIC_TLS_DROP_BYPASS_REQ, 1);
	kfree_skb(skb);
	return NULL;
}

/* What is to go on the wire for this frame; NULL if nothing. */
struct sk_buff *lnic_tls_transmit(struct lnic_port *port, struct lnic_queue *queue, struct sk_buff *skb, bool *sealed)
{
	struct tls_context *context;
	struct flow *flow;

	if (!lnic_is_offloaded(skb))
		return skb->decrypted ? transmit_orphaned(queue, skb) : skb;
	context = tls_get_ctx(skb->sk);
	if (!skb->decrypted) {
		flow = *place_of(context);
		/* Acknowledgements without data, and the handshake, sent again. */
		if (flow && skb->len > skb_tcp_all_headers(skb) && before(ntohl(tcp_hdr(skb)->seq), flow->start_seq)) {
			lnic_count(queue, LNIC_TLS_OOO, 1);
			lnic_count(queue, LNIC_TLS_SKIP_NO_SYNC_DATA, 1);
		}
		return skb;
	}
	/* The adapter is being taken down, or the route leads to another than the one that has the keys. */
	if (rcu_dereference_bh(context->netdev) != port->dev)
		return fall_back(queue, skb);
	return transmit_offloaded(port, queue, *place_of(context), skb, sealed);
}
