import CDBus

/// A message to be sent, which libdbus marshals.
@safe final class OutgoingMessage {
    private let raw: OpaquePointer
    /// The file descriptors among the arguments, in order.
    private(set) var descriptors: [DBusDescriptor] = []

    /// A new message; libdbus gives none only when memory is exhausted.
    private init(made raw: OpaquePointer?) throws(DBusError) {
        guard let raw = unsafe raw else { throw .noMemory }
        unsafe self.raw = raw
    }

    deinit {
        unsafe dbus_message_unref(raw)
    }

    /// The path of the object that the message is for or from; empty for an answer.
    var path: String {
        guard let path = unsafe dbus_message_get_path(raw) else { return "" }
        return unsafe String(cString: path)
    }

    /// The encoded message; call once only.
    func bytes(serial: UInt32) throws(DBusError) -> [UInt8] {
        var start: UnsafeMutablePointer<CChar>?
        var count: Int32 = 0
        unsafe dbus_message_set_serial(raw, serial)
        guard unsafe dbus_message_marshal(raw, &start, &count) != 0, let start = unsafe start else { throw .noMemory }
        defer { unsafe dbus_free(start) }
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
    }

    /// A method call that never starts the service.
    static func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue]
    ) throws(DBusError) -> OutgoingMessage {
        try DBusNameCheck.check(destination, is: .busName)
        try DBusNameCheck.check(path, is: .path)
        try DBusNameCheck.check(interface, is: .interface)
        try DBusNameCheck.check(member, is: .member)
        let message = unsafe try OutgoingMessage(
            made: dbus_message_new_method_call(destination, path, interface, member)
        )
        unsafe dbus_message_set_auto_start(message.raw, 0)
        try message.append(arguments)
        return message
    }

    static func signal(
        _ path: String,
        _ interface: String,
        _ member: String,
        to destination: String?,
        _ arguments: [DBusValue]
    ) throws(DBusError) -> OutgoingMessage {
        try DBusNameCheck.check(path, is: .path)
        try DBusNameCheck.check(interface, is: .interface)
        try DBusNameCheck.check(member, is: .member)
        let message = unsafe try OutgoingMessage(made: dbus_message_new_signal(path, interface, member))
        if let destination {
            try DBusNameCheck.check(destination, is: .busName)
            unsafe dbus_message_set_destination(message.raw, destination)
        }
        try message.append(arguments)
        return message
    }

    /// Sets the flag that no reply is expected.
    func declineReply() {
        unsafe dbus_message_set_no_reply(raw, 1)
    }

    /// An answer to the call that `sender` gave the number `serial`.
    static func reply(to serial: UInt32, of sender: String, _ values: [DBusValue]) throws(DBusError) -> OutgoingMessage
    {
        let reply = try answer(DBUS_MESSAGE_TYPE_METHOD_RETURN, to: serial, of: sender)
        try reply.append(values)
        return reply
    }

    static func error(_ error: DBusError, to serial: UInt32, of sender: String) throws(DBusError) -> OutgoingMessage {
        try DBusNameCheck.check(error.name, is: .errorName)
        let reply = try answer(DBUS_MESSAGE_TYPE_ERROR, to: serial, of: sender)
        unsafe dbus_message_set_error_name(reply.raw, error.name)
        try reply.append([.string(error.message)])
        return reply
    }

    private static func answer(_ type: Int32, to serial: UInt32, of sender: String) throws(DBusError) -> OutgoingMessage
    {
        let reply = unsafe try OutgoingMessage(made: dbus_message_new(type))
        reply.declineReply()
        unsafe dbus_message_set_reply_serial(reply.raw, serial)
        if !sender.isEmpty {
            try DBusNameCheck.check(sender, is: .busName)
            unsafe dbus_message_set_destination(reply.raw, sender)
        }
        return reply
    }

    /// The machine's D-Bus identifier, as `GetMachineId` returns it.
    static func machineID() throws(DBusError) -> String {
        guard let characters = unsafe dbus_try_get_local_machine_id(nil) else {
            throw DBusError(name: DBusError.failedName, message: "this machine has no /etc/machine-id")
        }
        defer { unsafe dbus_free(characters) }
        return unsafe String(cString: characters)
    }

    private func append(_ arguments: [DBusValue]) throws(DBusError) {
        var writer = try MessageWriter(checking: arguments)
        unsafe writer.write(to: raw)
        descriptors += writer.descriptors
    }
}

extension DBusError {
    fileprivate static let noMemory = DBusError(
        name: "org.freedesktop.DBus.Error.NoMemory",
        message: "no memory for a D-Bus message"
    )
}
