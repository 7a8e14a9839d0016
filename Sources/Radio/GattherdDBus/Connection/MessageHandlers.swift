/// The handlers of received messages other than replies, and of the connection's end.
final class MessageHandlers {
    /// One exported path, or a path with everything below it.
    private struct Export {
        let isSubtree: Bool
        let handler: (DBusMethodCall) -> Void
    }

    /// A handler of signals, with the number to remove it by.
    private struct SignalHandler {
        let id: UInt64
        let body: (borrowing DBusSignal) -> Void
    }

    private var exports: [String: Export] = [:]
    private var signalHandlers: [SignalHandler] = []
    private var otherHandlers: [(UInt32, String) -> Void] = []
    private var disconnectHandlers: [() -> Void] = []
    private var nextID: UInt64 = 0

    // MARK: - Registration

    /// Calls `handler` for each signal, in the order of arrival; returns a number to remove it by.
    @discardableResult
    func onSignal(_ handler: @escaping (borrowing DBusSignal) -> Void) -> UInt64 {
        defer { nextID += 1 }
        signalHandlers.append(SignalHandler(id: nextID, body: handler))
        return nextID
    }

    func removeSignalHandler(_ id: UInt64) {
        signalHandlers.removeAll { $0.id == id }
    }

    /// Calls `handler` after each message that is not a signal, with its serial number and its sender.
    func onOtherMessage(_ handler: @escaping (UInt32, String) -> Void) {
        otherHandlers.append(handler)
    }

    /// Calls `handler` once, at the end of the connection.
    func onDisconnect(_ handler: @escaping () -> Void) {
        disconnectHandlers.append(handler)
    }

    /// Exports a path, and everything below it if `isSubtree`.
    func export(_ path: String, isSubtree: Bool, _ handler: @escaping (DBusMethodCall) -> Void) {
        exports[path] = Export(isSubtree: isSubtree, handler: handler)
    }

    /// Removes all handlers; returns those of the connection's end.
    func removeAll() -> [() -> Void] {
        defer { (exports, signalHandlers, otherHandlers, disconnectHandlers) = ([:], [], [], []) }
        return disconnectHandlers
    }

    // MARK: - Messages

    func receiveSignal(_ message: MessageView) {
        let signal = DBusSignal(message)
        for handler in signalHandlers { handler.body(signal) }
    }

    /// Passes a call to the handler of its path, else to that of the nearest subtree above it.
    func receiveCall(_ call: DBusMethodCall) {
        if let handler = handler(for: call.path) { handler(call) } else { call.answerWithoutHandler() }
    }

    /// Reports a message that was not a signal.
    func receivedOther(_ message: MessageView) {
        for handler in otherHandlers { handler(message.header.serial, message.sender) }
    }

    private func handler(for path: String) -> ((DBusMethodCall) -> Void)? {
        if let export = exports[path] { return export.handler }
        var prefix = path[...]
        while let slash = prefix.lastIndex(of: "/") {
            prefix = prefix[..<slash]
            if let export = exports[prefix.isEmpty ? "/" : String(prefix)], export.isSubtree { return export.handler }
        }
        return nil
    }
}
