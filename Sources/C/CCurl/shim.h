#pragma once
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <curl/header.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call: one function for each type.
static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}
// Copied by curl, except for CURLOPT_POSTFIELDS and CURLOPT_ERRORBUFFER.
static inline CURLcode ccurl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_writer(CURL *easy, curl_write_callback writer, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, writer);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
}
static inline CURLcode ccurl_set_header_writer(CURL *easy, curl_write_callback writer, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, writer);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
}
static inline long ccurl_status(CURL *easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}
// Seconds; 0 without Retry-After. A date in it is converted by curl.
static inline curl_off_t ccurl_retry_after(CURL *easy) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds;
}
// The error number of a failed connect(2), or 0.
static inline int ccurl_system_error(CURL *easy) {
    long code = 0;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &code);
    return (int)code;
}
// The socket of a connection made with CURLOPT_CONNECT_ONLY.
static inline curl_socket_t ccurl_socket(CURL *easy) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket);
    return socket;
}
// The result of the only transfer of `multi`, once it has ended.
static inline CURLcode ccurl_result(CURLM *multi) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)))
        if (message->msg == CURLMSG_DONE) return message->data.result;
    return CURLE_AGAIN;
}
