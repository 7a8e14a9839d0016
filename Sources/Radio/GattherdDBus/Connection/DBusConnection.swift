public import GattherdSync

/// One private connection to a bus.
///
/// The actor's executor is the loop. Only handlers and other actors on the same loop may call functions marked "on the
/// loop", without waiting. The connection lasts until ``close()`` or until the bus goes away, see ``onDisconnect(_:)``.
public actor DBusConnection {
    public nonisolated let loop: EventLoop
    private nonisolated let core: LoopConfined<ConnectionCore>
    /// The name that the bus gave us, for example `:1.42`.
    public private(set) var uniqueName = ""

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    private init(_ socket: BusSocket, on loop: EventLoop, readDelay: Duration) {
        self.loop = loop
        core = LoopConfined(ConnectionCore(socket, on: loop, readDelay: readDelay), to: loop)
    }

    /// Connects and registers with the bus.
    ///
    /// - Parameters:
    ///   - address: The bus.
    ///   - loop: The thread on which everything happens.
    ///   - timeout: The limit of connecting and registering together.
    ///   - readDelay: The longest wait of a signal to be read with others, see ``canWait()``.
    /// - Returns: The connection, which knows its name.
    /// - Throws: ``DBusError`` when no bus listens there, the bus refuses us, or `timeout` passes.
    public static func open(
        _ address: DBusAddress,
        on loop: EventLoop,
        timeout: Duration = .seconds(10),
        readDelay: Duration = .milliseconds(40)
    ) async throws(DBusError) -> DBusConnection {
        let deadline = SuspendingClock.now.advanced(by: timeout)
        let socket = try await address.connect(within: timeout, on: loop)
        let connection = DBusConnection(socket, on: loop, readDelay: readDelay)
        do throws(DBusError) {
            try await connection.sayHello(max(.zero, deadline - SuspendingClock.now))
        } catch {
            await connection.close()
            throw error.name == DBusError.disconnectedName ? .refused(by: address.description) : error
        }
        return connection
    }

    private func sayHello(_ timeout: Duration) async throws(DBusError) {
        core.value.attach()
        let reply = try await callBus("Hello", timeout: timeout)
        guard let name = reply.first?.string else { throw .invalid("the bus gave us no name") }
        uniqueName = name
    }

    public var isConnected: Bool { core.value.isConnected }

    /// The number of abandoned calls without an answer; the bus refuses calls at 128 without an answer.
    public var owedAnswers: Int { core.value.owedAnswers }

    /// Closes; calls that wait end with an error.
    ///
    /// Handlers are not called after it, apart from those of ``onDisconnect(_:)``.
    public func close() {
        core.value.shutDown()
    }

    /// Calls a method and waits for its answer; never starts the service.
    ///
    /// A deadline or a cancelled task ends only the wait; the service may still execute the call. `onReply` is given
    /// the outcome on the loop, in order with the signals around it; when the caller's task resumes, later signals may
    /// have been handled already.
    /// - Throws: ``DBusError`` with the service's words, or ``DBusError/timeoutName``,
    ///   ``DBusError/cancelledName``, ``DBusError/disconnectedName``, ``DBusError/invalidArgumentsName``.
    @discardableResult
    public func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        timeout: Duration,
        onReply: (@Sendable (Result<[DBusValue], DBusError>) -> Void)? = nil
    ) async throws(DBusError) -> [DBusValue] {
        try await callOnLoop(destination, path, interface, member, arguments, timeout: timeout, onReply: onReply)
    }

    private func callBus(
        _ member: String,
        _ arguments: [DBusValue] = [],
        timeout: Duration = .seconds(25)
    ) async throws(DBusError) -> [DBusValue] {
        let bus = "org.freedesktop.DBus"
        return try await call(bus, "/org/freedesktop/DBus", bus, member, arguments, timeout: timeout)
    }
}

// MARK: - The bus itself

extension DBusConnection {
    /// Adds a match rule to the bus.
    public func addMatch(_ rule: String) async throws(DBusError) {
        _ = try await callBus("AddMatch", [.string(rule)])
    }

    /// Requests a well-known name; fails at once if another client has it.
    public func requestName(_ name: String) async throws(DBusError) {
        let doNotQueue: UInt32 = 4
        let reply = try await callBus("RequestName", [.string(name), .uint32(doNotQueue)])
        let (primaryOwner, alreadyOwner) = (1, 4)
        guard let code = reply.first?.int, code == primaryOwner || code == alreadyOwner else {
            throw DBusError(name: DBusError.failedName, message: "the name \(name) is taken")
        }
    }

    /// Releases a well-known name; not having it is not an error.
    public func releaseName(_ name: String) async throws(DBusError) {
        _ = try await callBus("ReleaseName", [.string(name)])
    }

    /// Returns the unique name of the owner of `name`; `nil` if there is none.
    public func nameOwner(_ name: String) async throws(DBusError) -> String? {
        do throws(DBusError) {
            return try await callBus("GetNameOwner", [.string(name)]).first?.string
        } catch {
            guard error.name == "org.freedesktop.DBus.Error.NameHasNoOwner" else { throw error }
            return nil
        }
    }

    /// The signals that `filter` admits, decoded; when a reader is slow the oldest `limit` are kept.
    ///
    /// The bus sends only signals that match the rules of ``addMatch(_:)``. The stream ends with the connection.
    public func signals(matching filter: DBusSignalFilter, limit: Int = 1024) -> AsyncStream<DBusSignalMessage> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DBusSignalMessage.self,
            bufferingPolicy: .bufferingOldest(limit)
        )
        guard isConnected else {
            continuation.finish()
            return stream
        }
        let id = core.value.handlers.onSignal { signal in
            guard filter.admits(signal), let message = try? DBusSignalMessage(signal) else { return }
            continuation.yield(message)
        }
        onDisconnect { continuation.finish() }
        continuation.onTermination = { [loop, core] _ in
            loop.execute { core.value.handlers.removeSignalHandler(id) }
        }
        return stream
    }
}

// MARK: - On the loop's thread only

extension DBusConnection {
    /// Calls `handler` for each signal, in the order of arrival; on the loop.
    public nonisolated func onSignal(_ handler: @escaping (borrowing DBusSignal) -> Void) {
        core.value.handlers.onSignal(handler)
    }

    /// Marks the current signal, in its handler, as one that may arrive a little later.
    ///
    /// Many such signals, and nothing else, are read in groups, which costs far less; on the loop.
    public nonisolated func canWait() {
        core.value.markPatient()
    }

    /// Calls `handler` after each message that is not a signal, with its serial number and its sender; on the loop.
    public nonisolated func onOtherMessage(_ handler: @escaping (UInt32, String) -> Void) {
        core.value.handlers.onOtherMessage(handler)
    }

    /// True while messages are left in the socket, to be read together; on the loop.
    public nonisolated var isPausing: Bool { core.value.isPausing }

    /// Calls a method as ``call(_:_:_:_:_:timeout:onReply:)`` does; on the loop.
    ///
    /// `onAnswer` is given the answer even if the waiting has ended before, or an error if none can come.
    @discardableResult
    public func callOnLoop(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        timeout: Duration,
        isolation: isolated (any Actor)? = #isolation,
        onReply: ((Result<[DBusValue], DBusError>) -> Void)? = nil,
        onAnswer: @escaping (Result<[DBusValue], DBusError>) -> Void = { _ in }
    ) async throws(DBusError) -> [DBusValue] {
        let message = try OutgoingMessage.call(destination, path, interface, member, arguments)
        let id = core.value.makeCallID()
        let label = interface + "." + member
        let result = await withTaskCancellationHandler {
            // Without this the closure would leave the loop.
            _ = isolation
            return await withCheckedContinuation { waiter in
                let complete: (CallTable.Outcome) -> Void = { outcome in
                    onReply?(outcome)
                    waiter.resume(returning: outcome)
                }
                // The cancellation handler below may have run before there was a call to abandon.
                guard !Task.isCancelled else {
                    onAnswer(.failure(.cancelled))
                    return complete(.failure(.cancelled))
                }
                core.value.start(id, message, timeout, label, onAnswer: onAnswer, complete)
            }
        } onCancel: { [loop, core] in
            loop.execute { core.value.abandon(id, .cancelled) }
        }
        return try result.get()
    }

    /// Sends a method call in order with earlier and later calls; on the loop.
    ///
    /// The answer is given to `onReply`, on the loop. It may wait to be read with other messages.
    public nonisolated func ask(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        timeout: Duration,
        onReply: @escaping (Result<[DBusValue], DBusError>) -> Void
    ) {
        let message: OutgoingMessage
        do throws(DBusError) {
            message = try OutgoingMessage.call(destination, path, interface, member, arguments)
        } catch {
            return onReply(.failure(error))
        }
        let core = core.value
        core.start(core.makeCallID(), message, timeout, interface + "." + member, isUrgent: false) { outcome in
            core.markPatient()
            onReply(outcome)
        }
    }

    /// Ends the present calls of an object with `error` if they have no answer after a delay; on the loop.
    public nonisolated func abandonCalls(of path: String, after delay: Duration, _ error: DBusError) {
        core.value.abandonCalls(of: path, after: delay, error)
    }

    /// Calls `handler` once, when the connection ends for whatever reason; on the loop.
    ///
    /// The bus sees the end after the handler has returned, unless the bus itself ended the connection.
    public nonisolated func onDisconnect(_ handler: @escaping () -> Void) {
        core.value.handlers.onDisconnect(handler)
    }

    /// Exports `path`, and everything below it if `subtree`: `handler` answers all calls, on the loop.
    public nonisolated func export(
        _ path: String,
        subtree: Bool = false,
        handler: @escaping (DBusMethodCall) -> Void
    ) {
        core.value.handlers.export(path, isSubtree: subtree, handler)
    }

    /// Sends a signal, to all clients or to one; on the loop.
    ///
    /// - Throws: ``DBusError`` when a name or value is not valid in D-Bus, or the bus is gone.
    public nonisolated func emit(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        to destination: String? = nil
    ) throws(DBusError) {
        try core.value.send(try OutgoingMessage.signal(path, interface, member, to: destination, arguments))
    }

    /// Sends a method call that wants no reply; on the loop's thread only.
    ///
    /// - Throws: ``DBusError`` when a name or value is not valid in D-Bus, or the bus is gone.
    public nonisolated func post(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = []
    ) throws(DBusError) {
        let message = try OutgoingMessage.call(destination, path, interface, member, arguments)
        message.declineReply()
        try core.value.send(message)
    }
}

extension DBusSignalMessage {
    init(_ signal: borrowing DBusSignal) throws(DBusError) {
        sender = signal.sender
        path = signal.path
        interface = signal.interface
        member = signal.member
        arguments = try signal.arguments()
    }
}
