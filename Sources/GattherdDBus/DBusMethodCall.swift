import CDBus

/// A call of one of our exported methods; it may be answered at once or later, on the loop's thread, but only once.
public final class DBusMethodCall {
    private let message: Message
    private weak var core: ConnectionCore?
    private var isAnswered = false

    init(_ message: Message, on core: ConnectionCore) {
        self.message = message
        self.core = core
    }

    private var view: MessageView { unsafe MessageView(message.raw) }

    public var path: String { view.path ?? "" }
    /// Empty when the caller did not say it, which D-Bus allows.
    public var interface: String { view.interface ?? "" }
    public var member: String { view.member ?? "" }
    /// The unique name of the caller.
    public var sender: String { view.sender ?? "" }
    public var signature: String { view.signature }
    /// False when the caller does not wait; answers are then not sent.
    public var expectsReply: Bool { unsafe dbus_message_get_no_reply(message.raw) == 0 }

    /// Decodes the arguments.
    public func arguments() throws(DBusError) -> [DBusValue] { try view.arguments() }

    /// Answers; without effect when it was answered before or the bus is gone.
    ///
    /// - Throws: ``DBusError`` when a value cannot be said in D-Bus; the call is then still unanswered.
    public func reply(_ values: [DBusValue]) throws(DBusError) {
        try answer(try message.reply(values))
    }

    /// Answers with these values, or none.
    public func reply(_ values: DBusValue...) throws(DBusError) {
        try reply(values)
    }

    /// Answers with an error, whose name must be a D-Bus error name.
    public func fail(_ error: DBusError) throws(DBusError) {
        try answer(try message.reply(error))
    }

    /// Answers that there is no such method.
    public func failUnknownMethod() throws(DBusError) {
        let text = "Method \"\(member)\" with signature \"\(signature)\" on interface \"\(interface)\" doesn't exist\n"
        try fail(DBusError(name: "org.freedesktop.DBus.Error.UnknownMethod", message: text))
    }

    private func answer(_ reply: Message) throws(DBusError) {
        guard !isAnswered else { return }
        isAnswered = true
        guard expectsReply, let core, core.isConnected else { return }
        _ = try core.send(reply)
    }
}
