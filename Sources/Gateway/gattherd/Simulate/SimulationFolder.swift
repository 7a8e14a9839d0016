import FoundationEssentials
import GattherdSync
import Glibc

/// The folder of a simulation.
struct SimulationFolder {
    let path: String
    private let isKept: Bool

    /// - Parameter kept: A folder that stays; `nil` for a new one below `$TMPDIR`, or `/tmp`.
    /// - Throws: ``CommandFailure`` if it cannot be made.
    init(keeping kept: String?) throws(CommandFailure) {
        isKept = kept != nil
        if let kept {
            try? FileManager.default.createDirectory(atPath: kept, withIntermediateDirectories: true)
            path = kept.hasPrefix("/") ? kept : FileManager.default.currentDirectoryPath + "/" + kept
        } else {
            var template = Array(((Terminal.environment("TMPDIR") ?? "/tmp") + "/gattherd-XXXXXX").utf8CString)
            path = unsafe mkdtemp(&template).map { unsafe String(cString: $0) } ?? ""
        }
        guard unsafe access(path, W_OK | X_OK) == 0 else {
            let reason = SystemError.current.description
            throw CommandFailure(
                .cannotCreate,
                "gattherd simulate: no folder to work in: \(kept ?? "$TMPDIR"): \(reason)"
            )
        }
        if isKept { try claim() }
    }

    /// Checks that only files of an earlier simulation are replaced, and that none uses the folder now.
    private func claim() throws(CommandFailure) {
        // Stays open, and so locked, until this program ends.
        let folder = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0, flock(folder, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            let isTaken = code == EWOULDBLOCK
            let reason = isTaken ? "another simulation runs there" : SystemError(code).description
            throw CommandFailure(.cannotCreate, "gattherd simulate: \(path): \(reason); choose another --keep")
        }
        try refuseStrangers()
    }

    /// The folder of one gateway.
    private init(inside path: String) {
        self.path = path
        isKept = true
    }

    /// Creates a folder inside, which is removed with this one.
    ///
    /// - Throws: ``CommandFailure`` if it cannot be made, or has files that no simulation has written.
    func subfolder(_ name: String) throws(CommandFailure) -> SimulationFolder {
        let folder = SimulationFolder(inside: file(name))
        guard unsafe mkdir(folder.path, 0o755) == 0 || errno == EEXIST else {
            throw CommandFailure(.cannotCreate, "gattherd simulate: cannot create the folder \(folder.path)")
        }
        try folder.refuseStrangers()
        return folder
    }

    private func refuseStrangers() throws(CommandFailure) {
        guard let stranger else { return }
        throw CommandFailure(
            .cannotCreate,
            "gattherd simulate: \(file(stranger)) was not written by a simulation, and is not replaced; "
                + "choose another --keep, or remove it"
        )
    }

    /// Returns a file that no simulation has written and that would be replaced, if any.
    private var stranger: String? {
        let marked = [SimulationFiles.configurationName, SimulationFiles.brokerConfigurationName]
        if let other = marked.first(where: { isThere($0) && !isMarked($0) }) { return other }
        guard !isThere(SimulationFiles.configurationName) else { return nil }
        return [SimulationFiles.tokenName, SimulationFiles.databaseName].first(where: isThere)
    }

    private func isThere(_ name: String) -> Bool { unsafe access(file(name), F_OK) == 0 }

    private func isMarked(_ name: String) -> Bool {
        let bytes = FileManager.default.contents(atPath: file(name)) ?? Data()
        return bytes.starts(with: SimulationFiles.mark.utf8)
    }

    func file(_ name: String) -> String { path + "/" + name }

    func write(_ text: String, to name: String, isSecret: Bool = false) throws(CommandFailure) {
        let permissions: [FileAttributeKey: Any] = [.posixPermissions: isSecret ? 0o600 : 0o644]
        guard FileManager.default.createFile(atPath: file(name), contents: Data(text.utf8), attributes: permissions)
        else { throw CommandFailure(.cannotCreate, "gattherd simulate: cannot write \(file(name))") }
    }

    /// Removes the folder with its content, unless it is kept.
    func remove() {
        if !isKept { try? FileManager.default.removeItem(atPath: path) }
    }
}

/// TCP ports of 127.0.0.1.
enum LoopbackPort {
    /// Returns a port without a listener.
    ///
    /// - Throws: ``CommandFailure`` if there is none.
    static func free() throws(CommandFailure) -> UInt16 {
        let socket = makeSocket()
        defer { close(socket) }
        return try bindToFree(socket)
    }

    /// Returns different ports without listeners.
    ///
    /// - Throws: ``CommandFailure`` if there are too few.
    static func free(_ count: Int) throws(CommandFailure) -> [UInt16] {
        let sockets = (0..<count).map { _ in makeSocket() }
        defer { for socket in sockets { close(socket) } }
        return try sockets.map(bindToFree)
    }

    private static func bindToFree(_ socket: Int32) throws(CommandFailure) -> UInt16 {
        var address = address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe with(&address) { unsafe bind(socket, $0, length) } == 0
        guard isBound, unsafe with(&address, { unsafe getsockname(socket, $0, &length) }) == 0 else {
            throw CommandFailure(.unavailable, "gattherd simulate: no TCP port is free on 127.0.0.1")
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// True if the port has a listener.
    static func isOpen(_ port: UInt16) -> Bool {
        let socket = makeSocket()
        defer { close(socket) }
        var address = address(port)
        return unsafe with(&address) { unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) } == 0
    }

    private static func makeSocket() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func with(
        _ address: inout sockaddr_in,
        _ body: (UnsafeMutablePointer<sockaddr>) -> Int32
    ) -> Int32 {
        unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0) }
        }
    }
}
