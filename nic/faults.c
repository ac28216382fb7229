// SPDX-License-Identifier: GPL-2.0
/*
 * Steps that can be told to fail: each place that can fail asks here first. fail_init=N makes the Nth step of loading
 * fail, fail_setup=N the Nth step of every connection's set-up; init_steps and setup_steps say how many there are.
 */
#include <linux/moduleparam.h>

#include "nic.h"

static int fail_init;
module_param(fail_init, int, 0444);
MODULE_PARM_DESC(fail_init, "step of loading that fails; 0: none");

static int init_steps;
module_param(init_steps, int, 0444);
MODULE_PARM_DESC(init_steps, "read only: steps of loading that can fail");

static int fail_setup;
module_param(fail_setup, int, 0644);
MODULE_PARM_DESC(fail_setup, "step of a connection's set-up that fails; 0: none");

static int setup_steps;
module_param(setup_steps, int, 0444);
MODULE_PARM_DESC(setup_steps, "read only: steps of a set-up that can fail; known after the first");

static int steps_done;

/* The next step of loading: 0, or the error that it is to fail with. */
int lnic_init_step(void)
{
	return ++steps_done == fail_init ? -ENOMEM : 0;
}

void lnic_init_steps_done(void)
{
	init_steps = steps_done;
}

/* A step of a set-up; these go on side by side, so each says which it is. */
int lnic_setup_step(int step)
{
	if (step > READ_ONCE(setup_steps))
		WRITE_ONCE(setup_steps, step);
	return READ_ONCE(fail_setup) == step ? -EIO : 0;
}
