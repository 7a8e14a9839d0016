import GattherdSync

/// One exported path, or a path with everything below it.
struct ExportedPath {
    let isSubtree: Bool
    let handler: (DBusMethodCall) -> Void
}

/// A handler of signals, with the number to remove it by.
struct SignalHandler {
    let id: UInt64
    let body: (borrowing DBusSignal) -> Void
}

extension ConnectionCore {
    /// Passes one received message on.
    func receive(_ message: MessageView) {
        switch message.header.kind {
        case .signal: return receiveSignal(message)
        case .reply, .error: receiveReply(message)
        case .call: receiveCall(message)
        case nil: break
        }
        for handler in messageHandlers { handler(message.header.serial, message.sender) }
    }

    private func receiveSignal(_ message: MessageView) {
        let signal = DBusSignal(message)
        for handler in signalHandlers { handler.body(signal) }
    }

    /// Completes the call of a reply; a reply after its deadline is ignored.
    private func receiveReply(_ message: MessageView) {
        guard let call = calls.take(serial: message.header.replySerial, on: loop) else { return }
        let isError = message.header.kind == .error
        call.completion(isError ? .failure(message.error) : Result { () throws(DBusError) in try message.arguments() })
        sendWaitingCalls()
    }

    private func receiveCall(_ message: MessageView) {
        let call = DBusMethodCall(message, on: self)
        if let handler = handler(for: call.path) { handler(call) } else { call.answerWithoutHandler() }
    }

    /// The handler of `path`, else that of the nearest subtree above it.
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

// MARK: - Calls

extension ConnectionCore {
    /// Sends a call, or queues it while too many are open; `completion` is called exactly once.
    ///
    /// The answer to a call that is not urgent may wait to be read with other messages.
    func start(
        _ id: UInt64,
        _ message: OutgoingMessage,
        _ timeout: Duration,
        _ label: String,
        isUrgent: Bool = true,
        _ completion: @escaping (CallTable.Outcome) -> Void
    ) {
        guard isConnected else { return completion(.failure(.disconnected)) }
        if isUrgent {
            endPause()
            lastCall = .now
        }
        let timer = loop.schedule(after: timeout) { [weak self] in
            self?.abandon(id, .timeout(label, after: timeout))
        }
        calls.add(id, CallTable.Call(message: message, timer: timer, completion: completion))
        sendWaitingCalls()
    }

    /// Ends a call that still waits; its late answer will be ignored.
    func abandon(_ id: UInt64, _ error: DBusError) {
        calls.abandon(id, on: loop)?.completion(.failure(error))
        sendWaitingCalls()
    }

    private func sendWaitingCalls() {
        while let (id, message) = calls.next() {
            do throws(DBusError) {
                calls.opened(id, serial: try send(message))
            } catch {
                calls.take(id, on: loop)?.completion(.failure(error))
            }
        }
    }
}
