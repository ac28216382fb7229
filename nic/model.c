// SPDX-License-Identifier: GPL-2.0
/*
 * The figures of the adapter that is modelled: each a parameter of the module, which can be read and written in
 * /sys/module/linerate_nic/parameters while traffic flows, and presets that set all of them at once. README.md says
 * where the presets' figures are from, and which are assumed.
 */
#include <linux/module.h>

#include "nic.h"

struct preset {
	const char *name;
	struct lnic_model figures;
};

/* The first is what holds if nothing is said. */
static const struct preset presets[] = {
	{ "ideal", {
		.max_flows = 1 << 20,
		.command_timeout_ms = 60000,
	} },
	{ "connectx6dx", {
		.max_flows = 20000,
		.setup_commands = 2,
		.teardown_commands = 2,
		.command_us = 294,
		.setups_per_second = 850,
		.command_timeout_ms = 60000,
		.rate_mbps = 100000,
		.resync_us = 5,
	} },
	{ "connectx7", {
		.max_flows = 20000,
		.setup_commands = 1,
		.teardown_commands = 1,
		.command_us = 30,
		.setups_per_second = 16500,
		.command_timeout_ms = 60000,
		.rate_mbps = 400000,
		.resync_us = 5,
	} },
	{ "t6", {
		.max_flows = 16384,
		.setup_commands = 1,
		.command_us = 50,
		.command_timeout_ms = 30000,
		.rate_mbps = 100000,
		.resync_us = 5,
	} },
	{ "t7", {
		.max_flows = 32768,
		.setup_commands = 1,
		.command_us = 20,
		.command_timeout_ms = 30000,
		.rate_mbps = 400000,
		.resync_us = 5,
	} },
};

static const struct preset *chosen = &presets[0];

struct lnic_model lnic_model = {
	.max_flows = 1 << 20,
	.command_timeout_ms = 60000,
};

const char *lnic_preset(void)
{
	return READ_ONCE(chosen)->name;
}

static int set_preset(const char *value, const struct kernel_param *param)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(presets); i++) {
		if (sysfs_streq(value, presets[i].name)) {
			WRITE_ONCE(chosen, &presets[i]);
			lnic_model = presets[i].figures;
			return 0;
		}
	}
	return -EINVAL;
}

static int show_preset(char *to, const struct kernel_param *param)
{
	return sysfs_emit(to, "%s\n", lnic_preset());
}

static const struct kernel_param_ops preset_ops = { .set = set_preset, .get = show_preset };

module_param_cb(preset, &preset_ops, NULL, 0644);
MODULE_PARM_DESC(preset, "sets all of the figures below, which may follow it: ideal, connectx6dx, connectx7, t6, t7");

#define FIGURE(name, type, description)					\
	module_param_named(name, lnic_model.name, type, 0644);		\
	MODULE_PARM_DESC(name, description)

FIGURE(max_flows, int, "connections that a port can hold; more stay in software");
FIGURE(setup_commands, int, "firmware commands to set a connection up; the caller waits for them");
FIGURE(teardown_commands, int, "firmware commands to take a connection down; nobody waits");
FIGURE(command_us, int, "what a firmware command takes; they are carried out one after another");
FIGURE(setups_per_second, int, "set-ups that the firmware begins in a second; 0: no limit");
FIGURE(command_timeout_ms, int, "set-ups that would wait longer are refused; 0: none are");
FIGURE(rate_mbps, int, "the wire's rate; 0: no limit");
FIGURE(resync_us, int, "to bring a connection's state to another place in its stream");
FIGURE(resync_by_software, bool,
       "frames out of order are sealed by software until the core resynchronises; otherwise the record is read again");
FIGURE(drop_nth, int, "every Nth large frame is lost on the wire");
FIGURE(corrupt_nth, int, "one bit is wrong in every Nth frame that was sealed here");
