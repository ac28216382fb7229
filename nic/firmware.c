// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter's firmware: one queue of commands, carried out one after another. A set-up waits for its own and for all
 * that were given before, which is where small transfers lose their time. What takes connections down is given, too,
 * but nobody waits for it.
 *
 * The queue is a point in time: when it will be empty. Whoever gives a command moves it on, and sleeps until then.
 */
#include <linux/ktime.h>
#include <linux/sched.h>

#include "nic.h"

void lnic_firmware_init(struct lnic_port *port)
{
	spin_lock_init(&port->firmware.lock);
}

static u64 duration_ns(int commands)
{
	return (u64)max(commands, 0) * max(READ_ONCE(lnic_model.command_us), 0) * NSEC_PER_USEC;
}

/* Has the commands carried out after all others; returns when that will be, or 0 if it is later than the deadline. */
static u64 give(struct lnic_port *port, int commands, u64 now, u64 deadline, bool is_setup)
{
	struct lnic_firmware *firmware = &port->firmware;
	int per_second = READ_ONCE(lnic_model.setups_per_second);
	u64 start, done;

	spin_lock_bh(&firmware->lock);
	start = max(now, firmware->free_at_ns);
	if (is_setup && per_second > 0)
		start = max(start, firmware->next_setup_ns);
	done = start + duration_ns(commands);
	if (done > deadline) {
		done = 0;
	} else {
		firmware->free_at_ns = done;
		if (is_setup && per_second > 0)
			firmware->next_setup_ns = start + NSEC_PER_SEC / per_second;
	}
	spin_unlock_bh(&firmware->lock);
	if (done)
		lnic_count_port(port, LNIC_FIRMWARE_COMMANDS, max(commands, 0));
	return done;
}

/* Nothing interrupts it, as nothing interrupts mlx5's. */
static void sleep_until(u64 then_ns)
{
	ktime_t then = ns_to_ktime(then_ns);

	while (ktime_get_ns() < then_ns) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule_hrtimeout(&then, HRTIMER_MODE_ABS);
	}
}

static void count_wait(struct lnic_port *port, u64 since_ns)
{
	atomic64_t *longest = &port->counters[LNIC_FIRMWARE_WAIT_US_MAX];
	s64 wait_us = div_u64(ktime_get_ns() - since_ns, NSEC_PER_USEC);
	s64 seen = atomic64_read(longest);

	lnic_count_port(port, LNIC_FIRMWARE_WAIT_US, wait_us);
	while (wait_us > seen && !atomic64_try_cmpxchg(longest, &seen, wait_us))
		;
}

/* What a connection's set-up costs. -ETIMEDOUT, at once, where it would have to wait for too long. */
int lnic_firmware_set_up(struct lnic_port *port)
{
	u64 now = ktime_get_ns();
	u64 limit_ns = (u64)max(READ_ONCE(lnic_model.command_timeout_ms), 0) * NSEC_PER_MSEC;
	u64 done = give(port, READ_ONCE(lnic_model.setup_commands), now, limit_ns ? now + limit_ns : U64_MAX, true);

	if (!done)
		return -ETIMEDOUT;
	sleep_until(done);
	count_wait(port, now);
	return 0;
}

void lnic_firmware_tear_down(struct lnic_port *port)
{
	give(port, READ_ONCE(lnic_model.teardown_commands), ktime_get_ns(), U64_MAX, false);
}

/* A command that says where in its stream a connection goes on. */
void lnic_firmware_resync(struct lnic_port *port)
{
	u64 done = give(port, 1, ktime_get_ns(), U64_MAX, false);

	sleep_until(done + (u64)max(READ_ONCE(lnic_model.resync_us), 0) * NSEC_PER_USEC);
}
