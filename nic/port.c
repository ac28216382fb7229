// SPDX-License-Identifier: GPL-2.0
/*
 * A port of the adapter, as a network device: queues, transmission, and the interface's own statistics.
 */
#include <linux/etherdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "nic.h"

/* Whether what runs here, or is interrupted, is a process of another network namespace: the far end's client. */
static bool is_elsewhere(const struct net_device *dev)
{
	return current->nsproxy && !net_eq(current->nsproxy->net_ns, dev_net(dev));
}

static netdev_tx_t transmit(struct sk_buff *skb, struct net_device *dev)
{
	struct lnic_port *port = netdev_priv(dev);
	struct lnic_queue *queue = &port->queues[skb_get_queue_mapping(skb)];
	bool sealed = false;
	u64 began_ns, took_ns;

	LNIC_ADAPTER_BEGINS();
	began_ns = local_clock();
	skb = lnic_tls_transmit(port, queue, skb, &sealed);
	took_ns = local_clock() - began_ns;
	lnic_count(queue, LNIC_MODEL_NS, took_ns);
	if (is_elsewhere(dev))
		lnic_count(queue, LNIC_MODEL_NS_ELSEWHERE, took_ns);
	LNIC_ADAPTER_ENDS();
	if (skb)
		lnic_wire_send(port, queue, skb, sealed);
	else
		lnic_count(queue, LNIC_TX_DROPPED, 1);
	return NETDEV_TX_OK;
}

/* There is a link when both ends are up. */
static int open(struct net_device *dev)
{
	struct net_device *peer = ((struct lnic_port *)netdev_priv(dev))->peer->dev;

	netif_tx_start_all_queues(dev);
	if (peer->flags & IFF_UP) {
		netif_carrier_on(dev);
		netif_carrier_on(peer);
	}
	return 0;
}

static int stop(struct net_device *dev)
{
	struct lnic_port *port = netdev_priv(dev);

	netif_carrier_off(dev);
	netif_carrier_off(port->peer->dev);
	netif_tx_stop_all_queues(dev);
	hrtimer_cancel(&port->wire_timer);
	return 0;
}

/* What a port has received is what its peer has delivered. */
static void statistics(struct net_device *dev, struct rtnl_link_stats64 *to)
{
	const struct lnic_port *port = netdev_priv(dev);

	to->tx_packets = lnic_port_sum(port, LNIC_TX_PACKETS);
	to->tx_bytes = lnic_port_sum(port, LNIC_TX_BYTES);
	to->tx_dropped = lnic_port_sum(port, LNIC_TX_DROPPED);
	to->rx_packets = lnic_port_sum(port->peer, LNIC_DELIVERED_PACKETS);
	to->rx_bytes = lnic_port_sum(port->peer, LNIC_DELIVERED_BYTES);
	to->rx_dropped = lnic_port_sum(port->peer, LNIC_UNDELIVERED);
}

static const struct net_device_ops device_ops = {
	.ndo_open = open,
	.ndo_stop = stop,
	.ndo_start_xmit = transmit,
	.ndo_get_stats64 = statistics,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static void set_up(struct net_device *dev)
{
	netdev_features_t offloads = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_HIGHDMA;

	ether_setup(dev);
	eth_hw_addr_random(dev);
	dev->netdev_ops = &device_ops;
	dev->ethtool_ops = &lnic_ethtool_ops;
	dev->tlsdev_ops = &lnic_tls_ops;
	/* HW_TLS_TX is taken back by the core where there is no HW_CSUM. */
	dev->hw_features = offloads | NETIF_F_RXCSUM | NETIF_F_HW_TLS_TX;
	dev->features = dev->hw_features;
	dev->vlan_features = offloads;
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = ETH_MAX_MTU;
}

struct lnic_port *lnic_port_new(unsigned int index, unsigned int queues)
{
	char name[IFNAMSIZ];
	struct net_device *dev;
	struct lnic_port *port;
	unsigned int i;

	snprintf(name, sizeof(name), "lrnic%u", index);
	dev = lnic_init_step() ? NULL : alloc_netdev_mqs(sizeof(*port), name, NET_NAME_PREDICTABLE, set_up, queues, queues);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	port = netdev_priv(dev);
	port->dev = dev;
	port->queue_count = queues;
	port->queues = lnic_init_step() ? NULL : kcalloc(queues, sizeof(*port->queues), GFP_KERNEL);
	if (!port->queues) {
		free_netdev(dev);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < queues; i++) {
		port->queues[i].index = i;
		u64_stats_init(&port->queues[i].sync);
	}
	lnic_firmware_init(port);
	lnic_wire_init(port);
	netif_carrier_off(dev);
	return port;
}

void lnic_port_free(struct lnic_port *port)
{
	WARN_ON(atomic_read(&port->flows));
	kfree(port->queues);
	free_netdev(port->dev);
}
