// SPDX-License-Identifier: GPL-2.0
/*
 * linerate_nic: a software model of network adapters that encrypt TLS records in line.
 *
 * Ports come in pairs, lrnic0 and lrnic1, lrnic2 and lrnic3, wired back to back; one of each is meant to be moved to
 * another network namespace. To the kernel each is an adapter with tls-hw-tx-offload: kernel TLS hands it records in
 * the clear, and what appears at the other end is AES-GCM ciphertext.
 *
 * The module's one job here: to make the ports, and to take them away, at its end or when a step of making them fails.
 */
#define pr_fmt(format) KBUILD_MODNAME ": " format

#include <linux/module.h>
#include <linux/rtnetlink.h>

#include "nic.h"
#include "seal.h"

static unsigned int pairs = 1;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "pairs of ports, 1 to 4");

static unsigned int queues = 4;
module_param(queues, uint, 0444);
MODULE_PARM_DESC(queues, "transmit queues and receive queues of each port, 1 to 64");

static struct lnic_port *ports[2 * LNIC_MAX_PAIRS];

/*
 * Whatever there is. When a device is unregistered the TLS core takes all connections away from it, so no flow is left
 * when its port is freed; and no port is freed before all are unregistered, because the other end sends to it.
 */
static void take_away(void)
{
	LIST_HEAD(registered);
	unsigned int i;

	rtnl_lock();
	for (i = 0; i < ARRAY_SIZE(ports); i++)
		if (ports[i] && ports[i]->dev->reg_state == NETREG_REGISTERED)
			unregister_netdevice_queue(ports[i]->dev, &registered);
	unregister_netdevice_many(&registered);
	rtnl_unlock();
	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		if (ports[i])
			lnic_port_free(ports[i]);
		ports[i] = NULL;
	}
}

static int make(void)
{
	unsigned int i;
	int err = lnic_init_step() ?: lnic_cipher_probe();

	if (err)
		return err;
	for (i = 0; i < 2 * pairs; i++) {
		struct lnic_port *port = lnic_port_new(i, queues);

		if (IS_ERR(port))
			return PTR_ERR(port);
		ports[i] = port;
	}
	for (i = 0; i < 2 * pairs; i++)
		ports[i]->peer = ports[i ^ 1];
	for (i = 0; i < 2 * pairs; i++) {
		err = lnic_init_step() ?: register_netdev(ports[i]->dev);
		if (err)
			return err;
	}
	return 0;
}

static int __init lnic_init(void)
{
	int err;

	if (!pairs || pairs > LNIC_MAX_PAIRS || !queues || queues > LNIC_MAX_QUEUES) {
		pr_err("pairs is 1 to %d, queues is 1 to %d\n", LNIC_MAX_PAIRS, LNIC_MAX_QUEUES);
		return -EINVAL;
	}
	err = make();
	if (err) {
		take_away();
		return err;
	}
	lnic_init_steps_done();
	return 0;
}

static void __exit lnic_exit(void)
{
	take_away();
}

module_init(lnic_init);
module_exit(lnic_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A software model of network adapters that encrypt TLS in line");
MODULE_SOFTDEP("pre: gcm aesni_intel");
