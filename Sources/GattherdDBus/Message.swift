import CDBus

/// One reference to a libdbus message, given back when it goes away.
@safe final class Message {
    let raw: OpaquePointer

    /// Takes over the caller's reference.
    init(owning raw: OpaquePointer) {
        unsafe self.raw = raw
    }

    /// Takes a reference of its own.
    init(sharing raw: OpaquePointer) {
        unsafe self.raw = dbus_message_ref(raw)
    }

    deinit {
        unsafe dbus_message_unref(raw)
    }

    /// A new message; libdbus gives none only when memory is exhausted.
    private convenience init(made raw: OpaquePointer?) throws(DBusError) {
        guard let raw = unsafe raw else {
            throw DBusError(name: "org.freedesktop.DBus.Error.NoMemory", message: "no memory for a D-Bus message")
        }
        unsafe self.init(owning: raw)
    }

    /// A method call that never starts its receiver.
    static func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue]
    ) throws(DBusError) -> Message {
        try Name.check(destination, is: .busName)
        try Name.check(path, is: .path)
        try Name.check(interface, is: .interface)
        try Name.check(member, is: .member)
        let message = unsafe try Message(made: dbus_message_new_method_call(destination, path, interface, member))
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
    ) throws(DBusError) -> Message {
        try Name.check(path, is: .path)
        try Name.check(interface, is: .interface)
        try Name.check(member, is: .member)
        let message = unsafe try Message(made: dbus_message_new_signal(path, interface, member))
        if let destination {
            try Name.check(destination, is: .busName)
            unsafe dbus_message_set_destination(message.raw, destination)
        }
        try message.append(arguments)
        return message
    }

    /// Tells the receiver that nobody waits for its answer.
    func declineReply() {
        unsafe dbus_message_set_no_reply(raw, 1)
    }

    func reply(_ arguments: [DBusValue]) throws(DBusError) -> Message {
        let reply = unsafe try Message(made: dbus_message_new_method_return(raw))
        try reply.append(arguments)
        return reply
    }

    func reply(_ error: DBusError) throws(DBusError) -> Message {
        try Name.check(error.name, is: .errorName)
        try Name.check(error.message, is: .text)
        return unsafe try Message(made: dbus_message_new_error(raw, error.name, error.message))
    }

    private func append(_ arguments: [DBusValue]) throws(DBusError) {
        var writer = try MessageWriter(checking: arguments)
        unsafe writer.write(to: raw)
    }
}
