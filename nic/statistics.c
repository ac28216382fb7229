// SPDX-License-Identifier: GPL-2.0
/*
 * What ethtool shows: counters, by the names that mlx5 and the kernel's tls-offload.rst have for them where there is
 * one; who the driver is; the number of queues and the speed.
 */
#include <linux/ethtool.h>
#include <linux/module.h>

#include "nic.h"

struct name {
	unsigned int counter;
	const char *name;
};

/* Sums over the queues. */
static const struct name sums[] = {
	{ LNIC_TLS_ENCRYPTED_PACKETS, "tx_tls_encrypted_packets" },
	{ LNIC_TLS_ENCRYPTED_BYTES, "tx_tls_encrypted_bytes" },
	{ LNIC_TLS_OOO, "tx_tls_ooo" },
	{ LNIC_TLS_DUMP_PACKETS, "tx_tls_dump_packets" },
	{ LNIC_TLS_DUMP_BYTES, "tx_tls_dump_bytes" },
	{ LNIC_TLS_RESYNC_BYTES, "tx_tls_resync_bytes" },
	{ LNIC_TLS_SKIP_NO_SYNC_DATA, "tx_tls_skip_no_sync_data" },
	{ LNIC_TLS_DROP_NO_SYNC_DATA, "tx_tls_drop_no_sync_data" },
	{ LNIC_TLS_DROP_BYPASS_REQ, "tx_tls_drop_bypass_req" },
	{ LNIC_TLS_DROP_NO_MEMORY, "tx_tls_drop_no_memory" },
	{ LNIC_TLS_RECORDS, "tx_tls_records" },
	{ LNIC_TLS_FALLBACK, "tx_tls_fallback" },
	{ LNIC_MODEL_NS, "tx_model_ns" },
	{ LNIC_MODEL_NS_ELSEWHERE, "tx_model_ns_elsewhere" },
	{ LNIC_WIRE_LOST, "tx_wire_lost" },
	{ LNIC_WIRE_CORRUPTED, "tx_wire_corrupted" },
};

static const struct name of_port[] = {
	{ LNIC_TLS_CTX, "tx_tls_ctx" },
	{ LNIC_TLS_DEL, "tx_tls_del" },
	{ LNIC_TLS_RESYNC, "tx_tls_resync" },
	{ LNIC_SETUP_NO_ROOM, "tx_tls_setup_no_room" },
	{ LNIC_SETUP_UNSUPPORTED, "tx_tls_setup_unsupported" },
	{ LNIC_SETUP_FAILED, "tx_tls_setup_failed" },
	{ LNIC_SETUP_TIMEOUT, "tx_tls_setup_timeout" },
	{ LNIC_FIRMWARE_COMMANDS, "fw_commands" },
	{ LNIC_FIRMWARE_WAIT_US, "fw_setup_wait_us" },
	{ LNIC_FIRMWARE_WAIT_US_MAX, "fw_setup_wait_us_max" },
};

/* Of each queue: tx0_packets and so on. */
static const struct name of_queue[] = {
	{ LNIC_TX_PACKETS, "packets" },
	{ LNIC_TX_BYTES, "bytes" },
	{ LNIC_TLS_ENCRYPTED_PACKETS, "tls_encrypted_packets" },
	{ LNIC_TLS_ENCRYPTED_BYTES, "tls_encrypted_bytes" },
	{ LNIC_TLS_OOO, "tls_ooo" },
};

u64 lnic_queue_counter(const struct lnic_queue *queue, enum lnic_queue_counter counter)
{
	unsigned int start;
	u64 value;

	do {
		start = u64_stats_fetch_begin(&queue->sync);
		value = queue->counters[counter];
	} while (u64_stats_fetch_retry(&queue->sync, start));
	return value;
}

u64 lnic_port_sum(const struct lnic_port *port, enum lnic_queue_counter counter)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < port->queue_count; i++)
		sum += lnic_queue_counter(&port->queues[i], counter);
	return sum;
}

static int count(struct net_device *dev, int set)
{
	const struct lnic_port *port = netdev_priv(dev);

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return ARRAY_SIZE(sums) + ARRAY_SIZE(of_port) + port->queue_count * ARRAY_SIZE(of_queue);
}

static void names(struct net_device *dev, u32 set, u8 *to)
{
	const struct lnic_port *port = netdev_priv(dev);
	unsigned int i, queue;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < ARRAY_SIZE(sums); i++)
		ethtool_sprintf(&to, "%s", sums[i].name);
	for (i = 0; i < ARRAY_SIZE(of_port); i++)
		ethtool_sprintf(&to, "%s", of_port[i].name);
	for (queue = 0; queue < port->queue_count; queue++)
		for (i = 0; i < ARRAY_SIZE(of_queue); i++)
			ethtool_sprintf(&to, "tx%u_%s", queue, of_queue[i].name);
}

static void values(struct net_device *dev, struct ethtool_stats *stats, u64 *to)
{
	const struct lnic_port *port = netdev_priv(dev);
	unsigned int i, queue;

	for (i = 0; i < ARRAY_SIZE(sums); i++)
		*to++ = lnic_port_sum(port, sums[i].counter);
	for (i = 0; i < ARRAY_SIZE(of_port); i++)
		*to++ = atomic64_read(&port->counters[of_port[i].counter]);
	for (queue = 0; queue < port->queue_count; queue++)
		for (i = 0; i < ARRAY_SIZE(of_queue); i++)
			*to++ = lnic_queue_counter(&port->queues[queue], of_queue[i].counter);
}

static void driver(struct net_device *dev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, LNIC_NAME, sizeof(info->driver));
	/* What is modelled stands where others have their firmware's version. */
	strscpy(info->fw_version, lnic_preset(), sizeof(info->fw_version));
}

static void channels(struct net_device *dev, struct ethtool_channels *to)
{
	const struct lnic_port *port = netdev_priv(dev);

	to->max_combined = port->queue_count;
	to->combined_count = port->queue_count;
}

static int link_settings(struct net_device *dev, struct ethtool_link_ksettings *to)
{
	int rate_mbps = READ_ONCE(lnic_model.rate_mbps);

	to->base.speed = rate_mbps > 0 ? rate_mbps : SPEED_UNKNOWN;
	to->base.duplex = DUPLEX_FULL;
	to->base.port = PORT_OTHER;
	return 0;
}

const struct ethtool_ops lnic_ethtool_ops = {
	.get_sset_count = count,
	.get_strings = names,
	.get_ethtool_stats = values,
	.get_drvinfo = driver,
	.get_channels = channels,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = link_settings,
};
