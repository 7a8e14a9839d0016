/* refused: it declines this version of gattherd */
const void *gattherd_profile_v1(unsigned host_minor) { return host_minor > 1000 ? (const void *)1 : (const void *)0; }
