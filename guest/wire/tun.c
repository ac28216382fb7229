/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * tun NAME: makes a TUN device of this name, and hands packets on between it and standard input, which is a socket that keeps
 * their bounds (SOCK_SEQPACKET). `cargo xtask guest cost --wire` runs it on the host: its own end of ESP is in user space, as a
 * kernel need not have one. Ends when the other end of the socket is closed.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int pass_on(int from, int to)
{
    static char packet[65536];
    for (;;) {
        ssize_t bytes = read(from, packet, sizeof packet);
        if (bytes <= 0) return bytes < 0;
        /* A packet that a device which is down does not take is lost, as on any network. */
        if (write(to, packet, (size_t)bytes) < 0) perror("tun: a packet is lost");
    }
}

int main(int count, char **arguments)
{
    struct ifreq request;
    int device, status;
    pid_t other;
    if (count != 2 || strlen(arguments[1]) >= IFNAMSIZ) {
        fprintf(stderr, "tun: one name of a device is wanted\n");
        return 2;
    }
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, arguments[1]);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    device = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (device < 0 || ioctl(device, TUNSETIFF, &request) < 0) {
        perror("tun: cannot make the device");
        return 1;
    }
    other = fork();
    if (other < 0) {
        perror("tun: fork");
        return 1;
    }
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return pass_on(device, 0);
    }
    status = pass_on(0, device);
    kill(other, SIGKILL);
    return status;
}
