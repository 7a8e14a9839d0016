import CDBus
import CLinux
import Glibc

/// The socket of one connection to a bus; `deinit` closes it.
///
/// libdbus finds the bus, connects and authenticates. Later messages are read and written here: libdbus would read a
/// few messages at a time and validate each of them twice, although the bus has validated them.
@safe final class BusSocket: Sendable {
    let descriptor: Int32
    /// True if the bus agreed to pass file descriptors.
    let passesDescriptors: Bool

    /// Takes ownership of a connected, authenticated socket.
    init(owning descriptor: Int32, passesDescriptors: Bool) {
        self.descriptor = descriptor
        self.passesDescriptors = passesDescriptors
    }

    deinit {
        close(descriptor)
    }

    /// Connects and authenticates, which blocks.
    ///
    /// - Parameters:
    ///   - address: In D-Bus's syntax.
    ///   - limit: The time limit of the authentication; the kernel limits connecting.
    /// - Returns: The socket, ready for the first message.
    /// - Throws: ``DBusError`` if no bus listens at the address or the bus refuses the connection.
    static func connected(to address: String, within limit: Duration) throws(DBusError) -> BusSocket {
        try DBusNameCheck.check(address, is: .text)
        let end = SuspendingClock.now + limit
        let raw = unsafe try open(address)
        defer {
            unsafe dbus_connection_close(raw)
            unsafe dbus_connection_unref(raw)
        }
        while unsafe dbus_connection_get_is_authenticated(raw) == 0 {
            guard SuspendingClock.now < end else { throw .timeout("connect to \(address)", after: limit) }
            guard unsafe dbus_connection_read_write(raw, 1000) != 0 else { throw .refused(by: address) }
        }
        return unsafe try takeOver(raw, address)
    }

    private static func takeOver(_ raw: OpaquePointer, _ address: String) throws(DBusError) -> BusSocket {
        var socket: Int32 = -1
        guard unsafe dbus_connection_get_socket(raw, &socket) != 0 else { throw .refused(by: address) }
        let descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else {
            throw DBusError(name: DBusError.failedName, message: "no file descriptor left for a connection to the bus")
        }
        let passesDescriptors = unsafe dbus_connection_can_send_type(raw, TypeCode.fileDescriptor) != 0
        return BusSocket(owning: descriptor, passesDescriptors: passesDescriptors)
    }

    private static func open(_ address: String) throws(DBusError) -> OpaquePointer {
        var error = unsafe CDBus.DBusError()
        unsafe dbus_error_init(&error)
        defer { unsafe dbus_error_free(&error) }
        guard let raw = unsafe dbus_connection_open_private(address, &error) else {
            let name = unsafe error.name.map { unsafe String(cString: $0) } ?? DBusError.failedName
            let text = unsafe error.message.map { unsafe String(cString: $0) } ?? "unknown reason"
            throw DBusError(name: name, message: "cannot connect to the bus at \(address): \(text)")
        }
        unsafe dbus_connection_set_exit_on_disconnect(raw, 0)
        return unsafe raw
    }
}

/// The result of reading or writing.
enum Transfer {
    /// The number of transferred bytes.
    case some(Int)
    /// The kernel has no more bytes, or accepts none, for now.
    case blocked
    case ended

    fileprivate init(_ count: Int) {
        switch count {
        case 1...: self = .some(count)
        case 0: self = .ended
        default: self = errno == EAGAIN || errno == EINTR ? .blocked : .ended
        }
    }
}

extension BusSocket {
    /// Reads available bytes into `bytes` and appends the descriptors that came with them.
    func receive(into bytes: UnsafeMutableRawBufferPointer, _ descriptors: inout [DBusDescriptor]) -> Transfer {
        var count: Int32 = 0
        let transfer = unsafe withUnsafeTemporaryAllocation(of: Int32.self, capacity: Int(clinux_descriptor_limit)) {
            let numbers = unsafe $0
            let transfer = unsafe Transfer(
                clinux_receive(descriptor, bytes.baseAddress, bytes.count, numbers.baseAddress, &count)
            )
            for index in 0..<Int(count) { unsafe descriptors.append(DBusDescriptor(owning: raised(numbers[index]))) }
            return transfer
        }
        return transfer
    }

    /// Moves a received descriptor to a number above the connection's own.
    ///
    /// The kernel closes the files of a killed process from the highest number down. bluetoothd up to 5.66 crashes if
    /// the client of a notification socket leaves the bus before the socket ends, so the sockets must close first.
    private func raised(_ number: Int32) -> Int32 {
        guard number < descriptor else { return number }
        let higher = fcntl(number, F_DUPFD_CLOEXEC, descriptor)
        guard higher >= 0 else { return number }
        close(number)
        return higher
    }

    /// Writes as much of `bytes` as the kernel accepts; the descriptors are sent with the first byte.
    func send(_ bytes: ArraySlice<UInt8>, _ descriptors: [DBusDescriptor]) -> Transfer {
        let numbers = descriptors.map(\.rawValue)
        return unsafe bytes.withUnsafeBytes { bytes in
            unsafe Transfer(
                clinux_send(descriptor, bytes.baseAddress, bytes.count, numbers, Int32(numbers.count))
            )
        }
    }
}
