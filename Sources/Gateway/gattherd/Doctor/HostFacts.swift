import FoundationEssentials
import Glibc

/// Facts about the host or the container.
struct HostFacts: Hashable {
    var isContainer = false
    var isRoot = false
    var user = ""

    init() {}

    /// The present facts.
    static var current: Self {
        var facts = Self()
        let files = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"]
        facts.isContainer =
            files.contains { FileManager.default.fileExists(atPath: $0) } || Terminal.environment("container") != nil
        facts.isRoot = geteuid() == 0
        facts.user = unsafe getpwuid(geteuid()).map { unsafe String(cString: $0.pointee.pw_name) } ?? "\(geteuid())"
        return facts
    }
}
