import GattherdSync

/// A connection to a bus, driven by a loop and confined to its thread.
///
/// The loop holds it as long as the bus does; ``shutDown()`` ends both.
final class ConnectionCore {
    let loop: EventLoop
    /// The name that the bus gave us, for example `:1.42`.
    var uniqueName = ""
    var calls = CallTable()
    var exports: [String: ExportedPath] = [:]
    var signalHandlers: [SignalHandler] = []
    /// Called after each message that is no signal, with its serial number and its sender.
    var messageHandlers: [(UInt32, String) -> Void] = []
    var disconnectHandlers: [() -> Void] = []
    var nextHandlerID: UInt64 = 0
    private var socket: BusSocket?
    private var inbox = ReceiveBuffer()
    private var outbox = SendQueue()
    private var lastSerial: UInt32 = 0
    /// The events that the loop watches the socket for; `nil` if it does not.
    private var interest: DescriptorEvents?
    private var pacing: ReadPacing
    /// The number of messages of this turn whose handlers called them patient.
    var patientMessages = 0
    /// The end of the pause in which nothing is read.
    private var pauseEnd: LoopTimer?
    /// The time of the last call.
    var lastCall = SuspendingClock.now

    /// The age at which a call no longer needs a prompt answer, and the pause that it may then wait for.
    ///
    /// A usual connect is answered before: the next one waits for its answer.
    private static let (promptness, indulgence) = (Duration.milliseconds(500), Duration.milliseconds(10))
    /// The most messages that are handled before the loop's other work has its turn.
    private static let messagesPerTurn = 256

    init(_ socket: BusSocket, on loop: EventLoop, patience: Duration) {
        self.socket = socket
        self.loop = loop
        pacing = ReadPacing(longest: patience)
    }

    var isConnected: Bool { socket != nil }

    /// True while messages are left in the socket, to be read together.
    var isPausing: Bool { pauseEnd != nil }

    /// Starts to drive the connection; on the loop's thread.
    func attach() {
        updateInterest()
    }

    /// Sends a message and gives its serial number.
    func send(_ message: OutgoingMessage) throws(DBusError) -> UInt32 {
        guard let socket else { throw .disconnected }
        guard message.descriptors.isEmpty || socket.passesDescriptors else {
            throw .invalid("the bus does not pass file descriptors")
        }
        // Zero is no serial number.
        lastSerial = max(1, lastSerial &+ 1)
        outbox.append(try message.octets(serial: lastSerial), message.descriptors)
        outbox.flush(to: socket)
        updateInterest()
        return lastSerial
    }

    /// Ends the connection and fails everything that waits; the second call has no effect.
    func shutDown() {
        guard let socket = socket.take() else { return }
        endPause()
        if interest != nil { loop.unwatch(socket.descriptor) }
        interest = nil
        outbox = SendQueue()
        calls.failAll(.disconnected, on: loop)
        let handlers = disconnectHandlers
        disconnectHandlers.removeAll()
        signalHandlers.removeAll()
        messageHandlers.removeAll()
        exports.removeAll()
        for handler in handlers { handler() }
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
            try receive(from: socket)
        } catch {
            // After something that is no message the next one cannot be found.
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

    private func continueLater(after count: Int) {
        pauseIfBusy(after: count, isAll: false)
        loop.schedule(after: .zero) { [self] in handle([]) }
    }

    /// Pauses reading if all messages of this turn were patient and no call waits for a prompt answer.
    private func pauseIfBusy(after count: Int, isAll: Bool) {
        let now = SuspendingClock.now
        let areAllPatient = patientMessages >= count
        patientMessages = 0
        let isAwaited = calls.count > 0
        guard areAllPatient, pauseEnd == nil, isConnected, !isAwaited || now - lastCall > Self.promptness,
            let pause = pacing.read(count, isAll: isAll, at: now)
        else { return }
        pauseEnd = loop.schedule(after: isAwaited ? min(pause, Self.indulgence) : pause) { [self] in
            pauseEnd = nil
            // No poll is needed: reading shows as well whether anything has come.
            handle(.readable)
        }
    }

    /// Ends the pause: messages are read as soon as they come.
    func endPause() {
        guard let timer = pauseEnd.take() else { return }
        loop.cancel(timer)
        updateInterest()
    }
}
