import CLinux
import Glibc

/// The user of a client of the control socket, as the kernel states it.
struct ControlPeer: Hashable {
    /// The user; `nil` if the kernel does not report it.
    let user: uid_t?

    /// Reads the user of the process at the other end of a socket.
    init(of socket: Int32) {
        var user: uid_t = 0
        self.user = unsafe clinux_peer_user(socket, &user) ? user : nil
    }

    /// True for root and for the daemon's user; members of the socket's group may only ask.
    var mayChange: Bool { user == 0 || user == geteuid() }
}

extension ControlCall {
    /// True if the call changes nothing, neither in the daemon nor at devices.
    var isQuestion: Bool {
        switch self {
        case .status, .bonds: true
        case .connect, .disconnect, .set, .reload, .forgetBond, .table, .read, .write, .watch: false
        }
    }
}
