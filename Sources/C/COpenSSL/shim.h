#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

// Functions for macros with arguments, which Swift does not import.
static inline long copenssl_set_minimum_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}
static inline long copenssl_set_server_name(SSL *connection, const char *name) {
    return SSL_set_tlsext_host_name(connection, name);
}
static inline uint64_t copenssl_refuse_renegotiation(SSL_CTX *context) {
    return SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
}
// Sets the result of a read from an empty memory BIO.
static inline long copenssl_set_empty_return(BIO *memory, int result) {
    return BIO_set_mem_eof_return(memory, result);
}
// The SSL_R_… of an error of the protocol; 0 for any other error.
static inline int copenssl_protocol_error(unsigned long error) {
    return ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
}
