import CSystemd

/// What systemd is told, where it started us (`Type=notify`); nothing elsewhere.
enum Supervision {
    static func ready() { _ = unsafe sd_notify(0, "READY=1") }
    static func stopping() { _ = unsafe sd_notify(0, "STOPPING=1") }
}
