/* SPDX-License-Identifier: GPL-2.0 */
/* The adapter's cipher engine: AES-GCM as TLS 1.2 has it (RFC 5288), one record at a time. */
#ifndef LINERATE_NIC_SEAL_H
#define LINERATE_NIC_SEAL_H

#include <crypto/aead.h>
#include <net/tls.h>

#define LNIC_RECORD_HEADER_BYTES TLS_HEADER_SIZE
#define LNIC_NONCE_BYTES TLS_CIPHER_AES_GCM_128_IV_SIZE	/* the explicit part */
#define LNIC_TAG_BYTES TLS_CIPHER_AES_GCM_128_TAG_SIZE
#define LNIC_OVERHEAD_BYTES (LNIC_RECORD_HEADER_BYTES + LNIC_NONCE_BYTES + LNIC_TAG_BYTES)
#define LNIC_RECORD_BYTES (TLS_MAX_PAYLOAD_SIZE + LNIC_OVERHEAD_BYTES)

/* For use where the processor's vector registers may be used, and where not. The first may be missing. */
enum { LNIC_WITH_VECTORS, LNIC_ANYWHERE, LNIC_IMPLEMENTATIONS };

struct lnic_cipher {
	struct crypto_aead *aead[LNIC_IMPLEMENTATIONS];
	struct aead_request *request[LNIC_IMPLEMENTATIONS];
	u8 salt[TLS_CIPHER_AES_GCM_128_SALT_SIZE];
	u8 associated[TLS_AAD_SPACE_SIZE];
};

int lnic_cipher_probe(void);
bool lnic_cipher_knows(const struct tls_crypto_info *info);
int lnic_cipher_init(struct lnic_cipher *cipher, const struct tls_crypto_info *info);
void lnic_cipher_free(struct lnic_cipher *cipher);
int lnic_seal(struct lnic_cipher *cipher, u8 *record, unsigned int bytes, u64 sequence);

#endif
