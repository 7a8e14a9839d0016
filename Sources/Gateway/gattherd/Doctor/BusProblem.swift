import GattherdDBus

/// An error of D-Bus, and the remedy.
struct BusProblem {
    private let error: DBusError
    private let facts: HostFacts
    private let address: DBusAddress

    init(_ error: DBusError, _ facts: HostFacts, at address: DBusAddress) {
        self.error = error
        self.facts = facts
        self.address = address
    }

    /// The finding if the bus cannot be opened.
    var unreachable: DoctorFinding {
        DoctorFinding("bus", .error, error.message, remedy: remedy ?? absence)
    }

    /// The finding if the bus works but bluetoothd does not answer.
    var noService: DoctorFinding {
        switch error.name {
        case Self.name("AccessDenied"), Self.name("AuthFailed"):
            let advice = "usermod -a -G bluetooth \(facts.user), then log in again, or restart the service"
            return DoctorFinding(
                "policy",
                .error,
                "this user may not use bluetoothd: \(error.message)",
                remedy: remedy ?? advice
            )
        case Self.name("ServiceUnknown"), Self.name("NameHasNoOwner"):
            let advice = facts.isContainer ? "start it on the host: \(Self.start)" : Self.start
            return DoctorFinding("bluetoothd", .error, "bluetoothd does not run", remedy: advice)
        default:
            let advice = remedy ?? "systemctl restart bluetooth; journalctl -u bluetooth says more"
            return DoctorFinding("bluetoothd", .error, "bluetoothd does not answer: \(error.message)", remedy: advice)
        }
    }

    private static let start = "apt install bluez; systemctl enable --now bluetooth"

    private static func name(_ last: String) -> String { "org.freedesktop.DBus.Error." + last }

    /// The remedy that the message alone determines.
    private var remedy: String? {
        let words = error.message
        if words.contains("AppArmor") {
            return facts.isContainer
                ? "run the container with --security-opt apparmor=unconfined "
                    + "(compose: security_opt: [apparmor=unconfined])"
                : "allow it in the AppArmor profile that the message names (label=), or: aa-complain PROFILE"
        }
        if words.contains("SELinux") {
            return facts.isContainer
                ? "run the container with --security-opt label=disable"
                : "see: ausearch -m user_avc; allow it with audit2allow"
        }
        if words.contains("hung up during the handshake") {
            return facts.isContainer
                ? "the bus does not know the container's user: run without a user namespace (podman: --userns=host), "
                    + "as root or with the id of a user of the host"
                : "the bus refuses user \(facts.user): run as root or as the service's user"
        }
        return nil
    }

    private var absence: String {
        if error.message.contains("Permission denied") {
            return facts.isContainer
                ? "user \(facts.user) may not open the bus: set 'user:' and GATTHERD_UID to root "
                    + "or to a user of the host"
                : "run as root or as the service's user"
        }
        guard let folder = socketFolder else { return "correct bluetooth.bus in the configuration" }
        let isUsual = ["/run/dbus", "/var/run/dbus"].contains(folder)
        if facts.isContainer {
            let mount = "into the container: -v \(folder):\(folder)"
            return isUsual ? "mount the host's bus \(mount)" : "correct bluetooth.bus, or mount that bus \(mount)"
        }
        let advice = "correct bluetooth.bus in the configuration"
        return isUsual ? "apt install dbus; systemctl start dbus.socket; or \(advice)" : advice
    }

    /// The folder of the bus's socket; `nil` for a bus without a path.
    private var socketFolder: String? {
        let key = "unix:path="
        guard address.description.hasPrefix(key) else { return nil }
        let path = address.description.dropFirst(key.count).prefix { $0 != "," && $0 != ";" }
        return path.lastIndex(of: "/").map { String(path[..<$0]) }
    }
}
