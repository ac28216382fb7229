/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the software adapter know of each other.
 *
 * main.c        the module: makes the ports, pair by pair, and takes them away
 * model.c       the figures of the adapter that is modelled: parameters and presets
 * faults.c      steps that can be told to fail
 * port.c        a network device: queues, transmission, statistics of the interface
 * wire.c        from port to port: rate, loss, corruption
 * tls.c         connections whose records this port seals: set-up, frames, resynchronisation
 * seal.c        AES-GCM over one record
 * firmware.c    the command queue: what a set-up costs, and how many there are in a second
 * statistics.c  ethtool: counters, by mlx5's names
 */
#ifndef LINERATE_NIC_H
#define LINERATE_NIC_H

#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/u64_stats_sync.h>

#include "compat.h"

#define LNIC_NAME "linerate_nic"
#define LNIC_MAX_PAIRS 4
#define LNIC_MAX_QUEUES 64

/*
 * For QEMU's plugin that counts instructions (guest/instructions/count.c): what is executed in between is the
 * adapter's work, not the host's. To the processor both are instructions that do nothing.
 */
#ifdef CONFIG_X86
#define LNIC_ADAPTER_BEGINS() asm volatile(".byte 0x0f, 0x1f, 0x80, 0x4e, 0x49, 0x43, 0x42" ::: "memory")
#define LNIC_ADAPTER_ENDS() asm volatile(".byte 0x0f, 0x1f, 0x80, 0x4e, 0x49, 0x43, 0x45" ::: "memory")
#else
#define LNIC_ADAPTER_BEGINS() barrier()
#define LNIC_ADAPTER_ENDS() barrier()
#endif

/* model.c: all can be changed while traffic flows; read with READ_ONCE. 0 switches a limit or a fault off. */
struct lnic_model {
	int max_flows;			/* connections a port can hold; 0: none */
	int setup_commands;		/* firmware commands to set a connection up, and to take it down */
	int teardown_commands;
	int command_us;			/* what each takes; they are carried out one after another */
	int setups_per_second;
	int command_timeout_ms;		/* a set-up that would wait longer is refused */
	int rate_mbps;			/* of the wire */
	int resync_us;			/* to bring a connection's state to another place in its stream */
	bool resync_by_software;	/* as nfp and others do it; otherwise as mlx5 does */
	int drop_nth;			/* every Nth large frame is lost on the wire */
	int corrupt_nth;		/* of every Nth frame that was sealed here one bit is wrong */
};

extern struct lnic_model lnic_model;
const char *lnic_preset(void);

/* faults.c */
int lnic_init_step(void);
void lnic_init_steps_done(void);
int lnic_setup_step(int step);

/* statistics.c: by queue, written under the queue's lock. */
enum lnic_queue_counter {
	LNIC_TX_PACKETS,
	LNIC_TX_BYTES,
	LNIC_TX_DROPPED,
	LNIC_DELIVERED_PACKETS,		/* the peer's received ones */
	LNIC_DELIVERED_BYTES,
	LNIC_UNDELIVERED,
	LNIC_TLS_ENCRYPTED_PACKETS,
	LNIC_TLS_ENCRYPTED_BYTES,
	LNIC_TLS_OOO,
	LNIC_TLS_DUMP_PACKETS,
	LNIC_TLS_DUMP_BYTES,
	LNIC_TLS_RESYNC_BYTES,
	LNIC_TLS_SKIP_NO_SYNC_DATA,
	LNIC_TLS_DROP_NO_SYNC_DATA,
	LNIC_TLS_DROP_BYPASS_REQ,
	LNIC_TLS_DROP_NO_MEMORY,
	LNIC_TLS_RECORDS,
	LNIC_TLS_FALLBACK,
	LNIC_MODEL_NS,
	LNIC_MODEL_NS_ELSEWHERE,
	LNIC_WIRE_LOST,
	LNIC_WIRE_CORRUPTED,
	LNIC_QUEUE_COUNTERS
};

/* By port, written from anywhere. */
enum lnic_port_counter {
	LNIC_TLS_CTX,
	LNIC_TLS_DEL,
	LNIC_TLS_RESYNC,
	LNIC_SETUP_NO_ROOM,
	LNIC_SETUP_UNSUPPORTED,
	LNIC_SETUP_FAILED,
	LNIC_SETUP_TIMEOUT,
	LNIC_FIRMWARE_COMMANDS,
	LNIC_FIRMWARE_WAIT_US,
	LNIC_FIRMWARE_WAIT_US_MAX,
	LNIC_PORT_COUNTERS
};

struct lnic_queue {
	struct u64_stats_sync sync;
	u64 counters[LNIC_QUEUE_COUNTERS];
	u16 index;
} ____cacheline_aligned_in_smp;

struct lnic_firmware {
	spinlock_t lock;
	u64 free_at_ns;			/* when it has carried out what it was given */
	u64 next_setup_ns;		/* when setups_per_second lets another set-up begin */
};

struct lnic_port {
	struct net_device *dev;
	struct lnic_port *peer;
	struct lnic_queue *queues;
	unsigned int queue_count;
	atomic64_t counters[LNIC_PORT_COUNTERS];
	atomic_t flows;
	struct lnic_firmware firmware;

	/* wire.c */
	spinlock_t wire_lock;
	u64 wire_free_ns;		/* when what was sent will have left */
	struct hrtimer wire_timer;
	atomic_t frames_to_lose;	/* counted up to drop_nth */
	atomic_t frames_to_corrupt;
};

static inline void lnic_count(struct lnic_queue *queue, enum lnic_queue_counter counter, u64 by)
{
	u64_stats_update_begin(&queue->sync);
	queue->counters[counter] += by;
	u64_stats_update_end(&queue->sync);
}

static inline void lnic_count_port(struct lnic_port *port, enum lnic_port_counter counter, u64 by)
{
	atomic64_add(by, &port->counters[counter]);
}

u64 lnic_queue_counter(const struct lnic_queue *queue, enum lnic_queue_counter counter);
u64 lnic_port_sum(const struct lnic_port *port, enum lnic_queue_counter counter);
extern const struct ethtool_ops lnic_ethtool_ops;

/* port.c */
struct lnic_port *lnic_port_new(unsigned int index, unsigned int queues);
void lnic_port_free(struct lnic_port *port);

/* wire.c */
void lnic_wire_init(struct lnic_port *port);
void lnic_wire_send(struct lnic_port *port, struct lnic_queue *queue, struct sk_buff *skb, bool sealed);
void lnic_wire_hold(struct lnic_port *port, u64 ns);

/* tls.c */
extern const struct tlsdev_ops lnic_tls_ops;
struct sk_buff *lnic_tls_transmit(struct lnic_port *port, struct lnic_queue *queue, struct sk_buff *skb, bool *sealed);

/* firmware.c */
void lnic_firmware_init(struct lnic_port *port);
int lnic_firmware_set_up(struct lnic_port *port);
void lnic_firmware_tear_down(struct lnic_port *port);
void lnic_firmware_resync(struct lnic_port *port);

#endif
