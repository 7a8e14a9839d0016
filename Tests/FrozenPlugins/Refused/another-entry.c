/* refused: it does not export gattherd_profile_v1 */
const void *gattherd_profile_v2(unsigned host_minor) { return host_minor ? (const void *)0 : (const void *)1; }
