/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A plugin for QEMU's code generator (version 9.1 or later) that counts the guest's instructions, user space and
 * kernel apart, between marks:  -plugin count.so,out=FILE[,written=on]
 *
 * A mark is MARK_PAUSES or more executions of the instruction `pause` in user space with few other instructions in
 * between: a loop around Rust's std::hint::spin_loop() or C's _mm_pause(). It needs no privilege and no assembler,
 * and nothing else does it: locks spin a hundred times at most. At each mark a line is written:
 *
 *     mark NUMBER user COUNT kernel COUNT adapter COUNT      (instructions since the mark before)
 *
 * With written=on, which makes the guest several times slower, the bytes that were written to memory follow, the
 * adapter's left out: `... written-user BYTES written-kernel BYTES`. Copies and ciphers write; what a device fetches by
 * itself is in no count.
 *
 * What the software adapter does in the place of one of silicon (nic/nic.h, LNIC_ADAPTER_BEGINS) is counted as the
 * adapter's, not the kernel's.
 *
 * The declarations are QEMU's plugin API (include/qemu/qemu-plugin.h, GPL-2.0-or-later), written out because Debian
 * packages no header. The plugin becomes part of QEMU when it is loaded, hence its licence; nothing of it is part of
 * linerate.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define MARK_PAUSES 1000
#define MARK_STEP 32 /* instructions from one pause of a mark to the next, at most */

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
typedef struct { struct qemu_plugin_scoreboard *score; size_t offset; } qemu_plugin_u64;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint32_t qemu_plugin_meminfo_t;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0, QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_MEM_W = 2 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int operation, qemu_plugin_u64 entry, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*executed)(unsigned, void *), int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, void (*accessed)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *), int flags, int reads_or_writes, void *data);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*at_exit)(qemu_plugin_id_t, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
uint64_t qemu_plugin_u64_sum(qemu_plugin_u64 entry);

EXPORTED int qemu_plugin_version = 3;

static FILE *out;
static qemu_plugin_u64 in_user, in_kernel;

/* At the last mark, and at the last pause of user space. */
static uint64_t marked_user, marked_kernel, paused_user;
static unsigned marks, pauses;

/* Of the kernel's: the adapter's since the last mark, and the kernel's when the adapter began. */
static uint64_t in_adapter, adapter_began;

/* Bytes written since the last mark, where that is counted, and whether the adapter is at work: what it writes counts not. */
static bool counts_written, adapter_works;
static uint64_t user_wrote, kernel_wrote;

static void mark(void)
{
    uint64_t user = qemu_plugin_u64_sum(in_user), kernel = qemu_plugin_u64_sum(in_kernel);

    fprintf(out, "mark %u user %" PRIu64 " kernel %" PRIu64 " adapter %" PRIu64, marks++, user - marked_user,
            kernel - marked_kernel - in_adapter, in_adapter);
    if (counts_written)
        fprintf(out, " written-user %" PRIu64 " written-kernel %" PRIu64, user_wrote, kernel_wrote);
    fputc('\n', out);
    fflush(out);
    user_wrote = kernel_wrote = 0;
    marked_user = user;
    marked_kernel = kernel;
    in_adapter = 0;
}

/* The adapter is one processor's at a time: the guest has one. */
static void adapter_begins(unsigned processor, void *data)
{
    (void)processor, (void)data;
    adapter_began = qemu_plugin_u64_sum(in_kernel);
    adapter_works = true;
}

static void adapter_ends(unsigned processor, void *data)
{
    (void)processor, (void)data;
    in_adapter += qemu_plugin_u64_sum(in_kernel) - adapter_began;
    adapter_works = false;
}

/* The counter is that of the instruction's room, user space or the kernel. */
static void written(unsigned processor, qemu_plugin_meminfo_t info, uint64_t address, void *counter)
{
    (void)processor, (void)address;
    if (!adapter_works)
        *(uint64_t *)counter += UINT64_C(1) << qemu_plugin_mem_size_shift(info);
}

/* Before each `pause` of user space. */
static void pause_executed(unsigned processor, void *data)
{
    uint64_t user = qemu_plugin_u64_sum(in_user);

    (void)processor, (void)data;
    pauses = user - paused_user <= MARK_STEP ? pauses + 1 : 1;
    paused_user = user;
    if (pauses == MARK_PAUSES)
        mark();
}

/* When code is translated: have its instructions counted each time it is run. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    static const uint8_t pause[] = { 0xf3, 0x90 };
    static const uint8_t begins[] = { 0x0f, 0x1f, 0x80, 0x4e, 0x49, 0x43, 0x42 }, ends[] = { 0x0f, 0x1f, 0x80, 0x4e, 0x49, 0x43, 0x45 };
    size_t count = qemu_plugin_tb_n_insns(tb);
    bool is_user = !(qemu_plugin_tb_vaddr(tb) >> 63);
    uint8_t bytes[sizeof begins];

    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, is_user ? in_user : in_kernel, count);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        size_t length = qemu_plugin_insn_data(insn, bytes, sizeof bytes);
        void (*executed)(unsigned, void *) = NULL;

        if (is_user && length == sizeof pause && !memcmp(bytes, pause, sizeof pause))
            executed = pause_executed;
        else if (!is_user && length == sizeof begins && !memcmp(bytes, begins, sizeof begins))
            executed = adapter_begins;
        else if (!is_user && length == sizeof ends && !memcmp(bytes, ends, sizeof ends))
            executed = adapter_ends;
        if (executed)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, QEMU_PLUGIN_CB_NO_REGS, NULL);
        if (counts_written)
            qemu_plugin_register_vcpu_mem_cb(insn, written, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, is_user ? &user_wrote : &kernel_wrote);
    }
}

static void at_exit(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    fclose(out);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    struct qemu_plugin_scoreboard *counters;

    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4))
            out = fopen(argv[i] + 4, "w");
        else if (!strcmp(argv[i], "written=on"))
            counts_written = true;
    if (!out) {
        fprintf(stderr, "count: out=FILE is missing, or cannot be written\n");
        return -1;
    }
    counters = qemu_plugin_scoreboard_new(2 * sizeof(uint64_t));
    in_user = (qemu_plugin_u64){ counters, 0 };
    in_kernel = (qemu_plugin_u64){ counters, sizeof(uint64_t) };
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
