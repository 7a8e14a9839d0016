import GattherdSync

/// A connection to a bus, driven by a loop and confined to its thread.
///
/// The loop holds it as long as the bus does; ``shutDown()`` ends both.
final class ConnectionCore {
    let handlers = MessageHandlers()
    private let loop: EventLoop
    private var socket: BusSocket?
    private var inbox = ReceiveBuffer()
    private var outbox = SendQueue()
    private var calls = CallTable()
    private var lastSerial: UInt32 = 0
    /// The events that the loop watches the socket for; `nil` if it does not.
    private var interest: DescriptorEvents?
    private var pacing: ReadPacing
    /// The number of messages of this turn that may wait for others.
    private var patientMessages = 0
    /// The end of the pause in which nothing is read.
    private var pauseEnd: LoopTimer?
    /// The next batch of a backlog.
    private var nextBatch: LoopTimer?
    /// The time of the last call.
    private var lastCall = SuspendingClock.now

    /// The age at which a call no longer needs a prompt answer, and the pause that it may then wait for.
    ///
    /// A usual connect is answered before: the next one waits for its answer.
    private static let (promptAge, lateDelay) = (Duration.milliseconds(500), Duration.milliseconds(10))
    /// The maximum number of messages that are handled before the loop's other work has its turn.
    private static let messagesPerTurn = 256

    init(_ socket: BusSocket, on loop: EventLoop, readDelay: Duration) {
        self.socket = socket
        self.loop = loop
        pacing = ReadPacing(longest: readDelay)
    }

    var isConnected: Bool { socket != nil }

    /// True while messages are left in the socket, to be read together.
    var isPausing: Bool { pauseEnd != nil }

    /// The number of abandoned calls without an answer.
    var owedAnswers: Int { calls.abandonedCount }

    /// Starts to drive the connection; on the loop's thread.
    func attach() {
        updateInterest()
    }

    /// Sends a message; returns its serial number.
    @discardableResult
    func send(_ message: OutgoingMessage) throws(DBusError) -> UInt32 {
        guard let socket else { throw .disconnected }
        guard message.descriptors.isEmpty || socket.passesDescriptors else {
            throw .invalid("the bus does not pass file descriptors")
        }
        // Zero is not a serial number.
        lastSerial = max(1, lastSerial &+ 1)
        outbox.append(try message.bytes(serial: lastSerial), message.descriptors)
        outbox.flush(to: socket)
        updateInterest()
        return lastSerial
    }

    /// Marks the current message as one that may wait to be read with others.
    func markPatient() {
        patientMessages += 1
    }

    /// Ends the connection and fails everything that waits; the second call has no effect.
    ///
    /// The handlers run before the bus sees the end, so they can close resources that another client must release
    /// first.
    func shutDown() {
        guard let socket = socket.take() else { return }
        withExtendedLifetime(socket) {
            endPause()
            if let nextBatch = nextBatch.take() { loop.cancel(nextBatch) }
            if interest != nil { loop.unwatch(socket.descriptor) }
            interest = nil
            outbox = SendQueue()
            calls.failAll(.disconnected, on: loop)
            for handler in handlers.removeAll() { handler() }
        }
    }
}

// MARK: - Calls

extension ConnectionCore {
    func makeCallID() -> UInt64 { calls.makeID() }

    /// Sends a call, or queues it while too many are open; `completion` is called exactly once.
    ///
    /// `onAnswer` is called exactly once too, but not before the answer, unless none can come. The answer to a call
    /// that is not urgent may wait to be read with other messages.
    func start(
        _ id: UInt64,
        _ message: OutgoingMessage,
        _ timeout: Duration,
        _ label: String,
        isUrgent: Bool = true,
        onAnswer: @escaping (CallTable.Outcome) -> Void = { _ in },
        _ completion: @escaping (CallTable.Outcome) -> Void
    ) {
        guard isConnected else {
            onAnswer(.failure(.disconnected))
            return completion(.failure(.disconnected))
        }
        if isUrgent {
            endPause()
            lastCall = .now
        }
        let timer = loop.schedule(after: timeout) { [weak self] in
            self?.abandon(id, .timeout(label, after: timeout))
        }
        calls.add(id, CallTable.Call(message: message, timer: timer, onAnswer: onAnswer, completion: completion))
        sendWaitingCalls()
    }

    /// Ends the wait for a call; a late answer only reaches its `onAnswer`.
    func abandon(_ id: UInt64, _ error: DBusError) {
        if let call = calls.abandon(id, on: loop) {
            if call.serial == nil { call.onAnswer(.failure(error)) }
            call.completion(.failure(error))
        }
        sendWaitingCalls()
    }

    /// Ends the present calls of an object with `error` if they have no answer after a delay.
    func abandonCalls(of path: String, after delay: Duration, _ error: DBusError) {
        for id in calls.ids(of: path) {
            loop.schedule(after: delay) { [weak self] in self?.abandon(id, error) }
        }
    }

    private func sendWaitingCalls() {
        while let (id, message) = calls.dequeue() {
            do throws(DBusError) {
                calls.markSent(id, serial: try send(message))
            } catch {
                calls.remove(id, on: loop)?.end(.failure(error))
            }
        }
    }

    /// Completes the call of a reply.
    private func receiveReply(_ message: MessageView) {
        let serial = message.header.replySerial
        if let onAnswer = calls.removeAbandoned(serial: serial) { return onAnswer(outcome(of: message)) }
        guard let call = calls.remove(serial: serial, on: loop) else { return }
        call.end(outcome(of: message))
        sendWaitingCalls()
    }

    private func outcome(of message: MessageView) -> CallTable.Outcome {
        guard message.header.kind != .error else { return .failure(message.error) }
        return Result { () throws(DBusError) in try message.arguments() }
    }
}

// MARK: - Input and output

extension ConnectionCore {
    /// Updates the events that the loop watches the socket for.
    private func updateInterest() {
        guard let socket else { return }
        var wanted: DescriptorEvents = pauseEnd == nil ? .readable : []
        if !outbox.isEmpty { wanted.insert(.writable) }
        guard wanted != interest else { return }
        let isNew = interest == nil
        interest = wanted
        do throws(WatchError) {
            guard isNew else { return try loop.rewatch(socket.descriptor, for: wanted) }
            try loop.watch(socket.descriptor, for: wanted) { [self] ready in handle(ready) }
        } catch {
            // The kernel is out of room for watches: without one the connection is as good as lost.
            interest = nil
            loop.schedule(after: .zero) { [self] in shutDown() }
        }
    }

    private func handle(_ ready: DescriptorEvents) {
        guard let socket else { return }
        if ready.contains(.writable) { outbox.flush(to: socket) }
        do throws(DBusError) {
            // A backlog is read by its own timer only: one batch in each turn.
            if nextBatch == nil { try receive(from: socket) }
        } catch {
            // After invalid bytes the next message cannot be found.
            shutDown()
        }
        updateInterest()
    }

    /// Handles the waiting messages; more than fit in one turn wait for the next.
    private func receive(from socket: BusSocket) throws(DBusError) {
        var (count, isAll) = (0, false)
        while isConnected {
            while count < Self.messagesPerTurn, isConnected, let message = try inbox.next() {
                receive(message)
                count += 1
            }
            guard count < Self.messagesPerTurn else { return continueLater(after: count) }
            guard !isAll else { break }
            let (transfer, wasAll) = try inbox.fill(from: socket)
            if case .ended = transfer { return shutDown() }
            isAll = wasAll
        }
        pauseIfBusy(after: count, isAll: true)
    }

    private func receive(_ message: MessageView) {
        switch message.header.kind {
        case .signal: return handlers.receiveSignal(message)
        case .reply, .error: receiveReply(message)
        case .call: handlers.receiveCall(DBusMethodCall(message, on: self))
        case nil: break
        }
        handlers.receivedOther(message)
    }

    private func continueLater(after count: Int) {
        pauseIfBusy(after: count, isAll: false)
        nextBatch = loop.schedule(after: .zero) { [self] in
            nextBatch = nil
            handle([])
        }
    }

    /// Pauses reading if all messages of this turn can wait and no call needs a prompt answer.
    private func pauseIfBusy(after count: Int, isAll: Bool) {
        let now = SuspendingClock.now
        let areAllPatient = patientMessages >= count
        patientMessages = 0
        let isAwaited = calls.count > 0
        guard areAllPatient, pauseEnd == nil, isConnected, !isAwaited || now - lastCall > Self.promptAge,
            let pause = pacing.read(count, isAll: isAll, at: now)
        else { return }
        pauseEnd = loop.schedule(after: isAwaited ? min(pause, Self.lateDelay) : pause) { [self] in
            pauseEnd = nil
            // No poll is needed: reading shows as well whether anything has come.
            handle(.readable)
        }
    }

    /// Ends the pause: messages are read as soon as they arrive.
    private func endPause() {
        guard let timer = pauseEnd.take() else { return }
        loop.cancel(timer)
        updateInterest()
    }
}
