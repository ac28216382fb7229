/*
 * What FreeBSD's headers say of that which layout.rs has by number. Compiled against the
 * headers that zig has (scripts/check-freebsd.sh); a test holds it and layout.rs together.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/cpuset.h>
#include <sys/dirent.h>
#include <sys/filio.h>
#include <sys/ioctl.h>
#include <sys/ktls.h>
#include <sys/socket.h>
#include <sys/sockio.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <crypto/cryptodev.h>
#include <fcntl.h>

/* Where the data of a control message begins. */
#undef CMSG_DATA
#define CMSG_DATA _ALIGN(sizeof(struct cmsghdr))
#define IS(what, number) _Static_assert((what) == (number), #what)
#define LIES_AT(structure, field, offset) _Static_assert(offsetof(struct structure, field) == (offset), #structure "." #field)

IS(IPPROTO_TCP, 6);
IS(TCP_TXTLS_ENABLE, 39);
IS(TCP_TXTLS_MODE, 40);
IS(TCP_TLS_MODE_NONE, 0);
IS(TCP_TLS_MODE_SW, 1);
IS(TCP_TLS_MODE_IFNET, 2);
IS(TCP_TLS_MODE_TOE, 3);
IS(CRYPTO_AES_NIST_GCM_16, 25);
IS(CRYPTO_CHACHA20_POLY1305, 41);
IS(TLS_MAJOR_VER_ONE, 3);
IS(TLS_MINOR_VER_TWO, 3);
IS(TLS_MINOR_VER_THREE, 4);
IS(TLS_SET_RECORD_TYPE, 1);
IS(SF_NODISKIO, 1);
IS(CMSG_LEN(1), 17);
IS(CMSG_SPACE(1), 24);
IS(CMSG_DATA, 16);
LIES_AT(cmsghdr, cmsg_len, 0);
LIES_AT(cmsghdr, cmsg_level, 4);
LIES_AT(cmsghdr, cmsg_type, 8);
IS(sizeof(struct tls_enable), 64);
LIES_AT(tls_enable, cipher_key, 0);
LIES_AT(tls_enable, iv, 8);
LIES_AT(tls_enable, auth_key, 16);
LIES_AT(tls_enable, cipher_algorithm, 24);
LIES_AT(tls_enable, cipher_key_len, 28);
LIES_AT(tls_enable, iv_len, 32);
LIES_AT(tls_enable, auth_algorithm, 36);
LIES_AT(tls_enable, auth_key_len, 40);
LIES_AT(tls_enable, flags, 44);
LIES_AT(tls_enable, tls_vmajor, 48);
LIES_AT(tls_enable, tls_vminor, 49);
LIES_AT(tls_enable, rec_seq, 50);

IS(sizeof(struct tcp_info), 256);
LIES_AT(tcp_info, tcpi_snd_mss, 16);
LIES_AT(tcp_info, tcpi_rcv_mss, 20);
LIES_AT(tcp_info, tcpi_rtt, 68);
LIES_AT(tcp_info, tcpi_rttvar, 72);
LIES_AT(tcp_info, tcpi_snd_cwnd, 80);
LIES_AT(tcp_info, tcpi_snd_rexmitpack, 120);
LIES_AT(tcp_info, tcpi_snd_una, 176);
LIES_AT(tcp_info, tcpi_snd_max, 180);

IS(TCP_FUNCTION_NAME_LEN_MAX, 32);
IS(sizeof(struct tcp_function_set), 36);
IS(FIONWRITE, 0x40046677);
IS(SIOCGIFCAP, 0xC020691F);
IS(CPU_WHICH_DOMAIN, 6);
IS(SO_REUSEPORT_LB, 0x10000);
LIES_AT(dirent, d_fileno, 0);
LIES_AT(dirent, d_off, 8);
LIES_AT(dirent, d_reclen, 16);
LIES_AT(dirent, d_type, 18);
LIES_AT(dirent, d_namlen, 20);
LIES_AT(dirent, d_name, 24);
