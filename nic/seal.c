// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter's cipher engine: AES-GCM as TLS 1.2 has it (RFC 5288), one record at a time, by the kernel's own cipher.
 *
 * Frames are sent with interrupts of the network held off, so a cipher that answers later (CRYPTO_ALG_ASYNC) is of no
 * use. Before Linux 7 the fast implementations are of that kind, but for their inner part, which may be called where
 * the vector registers are free. They are not if the interrupt came while the kernel used them; then it is the other.
 */
#include <asm/simd.h>
#include <crypto/internal/simd.h>

#include "nic.h"
#include "seal.h"

/* Whether this kernel has the inner part; asked once, because asking for what is not there runs modprobe. */
static bool has_vectors;

int lnic_cipher_probe(void)
{
	struct crypto_aead *aead = crypto_alloc_aead("gcm(aes)", 0, CRYPTO_ALG_ASYNC);

	if (IS_ERR(aead))
		return PTR_ERR(aead);
	crypto_free_aead(aead);
	aead = crypto_alloc_aead("__gcm(aes)", CRYPTO_ALG_INTERNAL, CRYPTO_ALG_INTERNAL | CRYPTO_ALG_ASYNC);
	has_vectors = !IS_ERR(aead);
	if (has_vectors)
		crypto_free_aead(aead);
	return 0;
}

bool lnic_cipher_knows(const struct tls_crypto_info *info)
{
	return info->version == TLS_1_2_VERSION &&
	       (info->cipher_type == TLS_CIPHER_AES_GCM_128 || info->cipher_type == TLS_CIPHER_AES_GCM_256);
}

static const u8 *key_of(const struct tls_crypto_info *info, unsigned int *bytes, const u8 **salt)
{
	if (info->cipher_type == TLS_CIPHER_AES_GCM_128) {
		const struct tls12_crypto_info_aes_gcm_128 *keys = (const void *)info;

		*bytes = sizeof(keys->key);
		*salt = keys->salt;
		return keys->key;
	} else {
		const struct tls12_crypto_info_aes_gcm_256 *keys = (const void *)info;

		*bytes = sizeof(keys->key);
		*salt = keys->salt;
		return keys->key;
	}
}

static int add_implementation(struct lnic_cipher *cipher, int which, const char *name, u32 type, const u8 *key,
			      unsigned int key_bytes)
{
	struct crypto_aead *aead = crypto_alloc_aead(name, type, type | CRYPTO_ALG_ASYNC);
	int err;

	if (IS_ERR(aead))
		return PTR_ERR(aead);
	cipher->aead[which] = aead;
	cipher->request[which] = aead_request_alloc(aead, GFP_KERNEL);
	if (!cipher->request[which])
		return -ENOMEM;
	aead_request_set_callback(cipher->request[which], 0, NULL, NULL);
	err = crypto_aead_setauthsize(aead, LNIC_TAG_BYTES);
	return err ?: crypto_aead_setkey(aead, key, key_bytes);
}

/* What it has when it fails is taken away by lnic_cipher_free. */
int lnic_cipher_init(struct lnic_cipher *cipher, const struct tls_crypto_info *info)
{
	unsigned int key_bytes;
	const u8 *salt, *key;
	int err;

	key = key_of(info, &key_bytes, &salt);
	memcpy(cipher->salt, salt, sizeof(cipher->salt));
	err = lnic_setup_step(3) ?: add_implementation(cipher, LNIC_ANYWHERE, "gcm(aes)", 0, key, key_bytes);
	err = err ?: lnic_setup_step(4);
	if (err || !has_vectors)
		return err;
	return add_implementation(cipher, LNIC_WITH_VECTORS, "__gcm(aes)", CRYPTO_ALG_INTERNAL, key, key_bytes);
}

void lnic_cipher_free(struct lnic_cipher *cipher)
{
	int i;

	for (i = 0; i < LNIC_IMPLEMENTATIONS; i++) {
		aead_request_free(cipher->request[i]);
		crypto_free_aead(cipher->aead[i]);
	}
	memzero_explicit(cipher, sizeof(*cipher));
}

/*
 * Seals a record in its place: header, explicit nonce, plaintext, room for the tag. One caller at a time.
 */
int lnic_seal(struct lnic_cipher *cipher, u8 *record, unsigned int bytes, u64 sequence)
{
	int which = cipher->aead[LNIC_WITH_VECTORS] && crypto_simd_usable() ? LNIC_WITH_VECTORS : LNIC_ANYWHERE;
	struct aead_request *request = cipher->request[which];
	unsigned int text_bytes = bytes - LNIC_OVERHEAD_BYTES;
	u8 *text = record + LNIC_RECORD_HEADER_BYTES + LNIC_NONCE_BYTES;
	u8 nonce[sizeof(cipher->salt) + LNIC_NONCE_BYTES];
	struct scatterlist parts[2];

	memcpy(nonce, cipher->salt, sizeof(cipher->salt));
	memcpy(nonce + sizeof(cipher->salt), record + LNIC_RECORD_HEADER_BYTES, LNIC_NONCE_BYTES);
	/* RFC 5246, 6.2.3.3: sequence number, type, version, length of the plaintext. */
	put_unaligned_be64(sequence, cipher->associated);
	memcpy(cipher->associated + 8, record, 3);
	put_unaligned_be16(text_bytes, cipher->associated + 11);

	sg_init_table(parts, ARRAY_SIZE(parts));
	sg_set_buf(&parts[0], cipher->associated, sizeof(cipher->associated));
	sg_set_buf(&parts[1], text, text_bytes + LNIC_TAG_BYTES);
	aead_request_set_ad(request, sizeof(cipher->associated));
	aead_request_set_crypt(request, parts, parts, text_bytes, nonce);
	return crypto_aead_encrypt(request);
}
