/// A call of one of our exported methods.
///
/// Each call is answered once, at once or later, on the loop's thread.
public final class DBusMethodCall {
    public let path: String
    /// The interface; empty if the caller omitted it, which D-Bus allows.
    public let interface: String
    public let member: String
    /// The unique name of the caller.
    public let sender: String
    public let signature: String
    /// False if the caller does not wait for a reply; none is sent then.
    public let expectsReply: Bool
    private let serial: UInt32
    private let decoded: Result<[DBusValue], DBusError>
    private weak var core: ConnectionCore?
    private var isAnswered = false

    init(_ message: MessageView, on core: ConnectionCore) {
        path = message.path
        interface = message.interface
        member = message.member
        sender = message.sender
        signature = message.signature
        expectsReply = message.header.expectsReply
        serial = message.header.serial
        decoded = Result { () throws(DBusError) in try message.arguments() }
        self.core = core
    }

    /// The arguments, decoded.
    ///
    /// - Throws: ``DBusError`` if they are malformed.
    public func arguments() throws(DBusError) -> [DBusValue] { try decoded.get() }

    /// Sends the reply; has no effect if the call was answered before or the bus is gone.
    ///
    /// - Throws: ``DBusError`` if D-Bus cannot represent a value; the call is then still unanswered.
    public func reply(_ values: [DBusValue]) throws(DBusError) {
        try answer(try OutgoingMessage.reply(to: serial, of: sender, values))
    }

    /// Answers with these values, or none.
    public func reply(_ values: DBusValue...) throws(DBusError) {
        try reply(values)
    }

    /// Answers with an error, whose name must be a D-Bus error name.
    public func fail(_ error: DBusError) throws(DBusError) {
        try answer(try OutgoingMessage.error(error, to: serial, of: sender))
    }

    /// Answers that there is no such method.
    public func failUnknownMethod() throws(DBusError) {
        try fail(DBusError(name: "org.freedesktop.DBus.Error.UnknownMethod", message: unknownMethod))
    }

    private var unknownMethod: String {
        "Method \"\(member)\" with signature \"\(signature)\" on interface \"\(interface)\" doesn't exist\n"
    }

    /// Answers a call of a path without a handler; D-Bus specification, "org.freedesktop.DBus.Peer".
    func answerWithoutHandler() {
        do throws(DBusError) {
            switch (interface, member) {
            case ("org.freedesktop.DBus.Peer", "Ping"): try reply()
            case ("org.freedesktop.DBus.Peer", "GetMachineId"): try reply(.string(try OutgoingMessage.machineID()))
            default:
                try fail(DBusError(name: "org.freedesktop.DBus.Error.UnknownObject", message: unknownMethod))
            }
        } catch {
            try? fail(error)
        }
    }

    private func answer(_ reply: OutgoingMessage) throws(DBusError) {
        guard !isAnswered else { return }
        isAnswered = true
        guard expectsReply, let core, core.isConnected else { return }
        try core.send(reply)
    }
}
