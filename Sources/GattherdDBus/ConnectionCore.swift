import CDBus
import GattherdSync

/// A connection to a bus, driven by a loop and confined to its thread.
///
/// The loop holds it as long as the bus does; ``shutDown()`` ends both.
@safe final class ConnectionCore {
    let loop: EventLoop
    /// The name that the bus gave us, for example `:1.42`.
    var uniqueName = ""
    var calls = CallTable()
    var exports: [String: Export] = [:]
    var signalHandlers: [SignalHandler] = []
    var disconnectHandlers: [() -> Void] = []
    var nextHandlerID: UInt64 = 0
    private var handle: ConnectionHandle?
    private var watches: [OpaquePointer] = unsafe []
    private var watched: (descriptor: Int32, interest: Readiness)?
    private var isDispatching = false
    private var pacing: ReadPacing
    /// How many of the messages of this turn could have come a little later.
    var patientMessages = 0
    /// The end of the pause in which nothing is read.
    private var pauseEnd: LoopTimer?
    /// When somebody last called.
    var lastCall = SuspendingClock.now

    /// An answer that has not come by then takes its time; those who wait for it may wait a little longer.
    private static let (promptness, indulgence) = (Duration.milliseconds(50), Duration.milliseconds(10))
    /// The most messages that are handled before the loop's other work has its turn.
    private static let messagesPerTurn = 256

    init(_ handle: ConnectionHandle, on loop: EventLoop, patience: Duration) {
        self.handle = handle
        self.loop = loop
        pacing = ReadPacing(longest: patience)
    }

    var isConnected: Bool { handle != nil }

    /// Starts to drive the connection; on the loop's thread.
    func attach() {
        guard let handle else { return }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe dbus_connection_add_filter(handle.raw, filter, context, nil)
        unsafe dbus_connection_set_watch_functions(handle.raw, addWatch, removeWatch, toggleWatch, context, nil)
        dispatch()
    }

    /// Sends a message and gives its serial number.
    func send(_ message: Message) throws(DBusError) -> UInt32 {
        guard let handle, unsafe dbus_connection_get_is_connected(handle.raw) != 0 else { throw .disconnected }
        var serial: UInt32 = 0
        guard unsafe dbus_connection_send(handle.raw, message.raw, &serial) != 0 else {
            throw DBusError(name: "org.freedesktop.DBus.Error.NoMemory", message: "no memory to send a message")
        }
        dispatchWhatSendingBrought(handle)
        return serial
    }

    /// Ends the connection and tells everybody who waits for something; the second time does nothing.
    func shutDown() {
        guard let handle else { return }
        endPause()
        self.handle = nil
        unsafe dbus_connection_set_watch_functions(handle.raw, nil, nil, nil, nil, nil)
        unsafe dbus_connection_remove_filter(handle.raw, filter, Unmanaged.passUnretained(self).toOpaque())
        stopWatching()
        calls.failAll(.disconnected, on: loop)
        let handlers = disconnectHandlers
        disconnectHandlers.removeAll()
        signalHandlers.removeAll()
        exports.removeAll()
        for handler in handlers { handler() }
    }

    /// Takes the name that the bus gave us in answer to `Hello`.
    func adoptName(_ name: String) {
        guard let handle else { return }
        uniqueName = name
        unsafe dbus_bus_set_unique_name(handle.raw, name)
    }
}

// MARK: - Input and output

extension ConnectionCore {
    fileprivate func add(_ watch: OpaquePointer) {
        unsafe watches.append(watch)
        updateInterest()
    }

    fileprivate func remove(_ watch: OpaquePointer) {
        unsafe watches.removeAll { $0 == watch }
        updateInterest()
    }

    /// Asks the loop for what libdbus's enabled watches want: they are two for one socket.
    fileprivate func updateInterest() {
        guard let first = unsafe watches.first else { return stopWatching() }
        let descriptor = unsafe dbus_watch_get_unix_fd(first)
        var interest = unsafe watches.reduce(into: Readiness()) { unsafe $0.formUnion(Self.interest(of: $1)) }
        if pauseEnd != nil { interest.remove(.readable) }
        guard !interest.isEmpty else { return stopWatching() }
        guard watched?.descriptor != descriptor || watched?.interest != interest else { return }
        watch(descriptor, for: interest)
    }

    private func watch(_ descriptor: Int32, for interest: Readiness) {
        let isNew = watched == nil
        watched = (descriptor, interest)
        do throws(WatchError) {
            guard isNew else { return try loop.rewatch(descriptor, for: interest) }
            try loop.watch(descriptor, for: interest) { [self] ready in handle(ready) }
        } catch {
            // The kernel is out of room for watches: without one the connection is as good as lost.
            watched = nil
            loop.schedule(after: .zero) { [self] in shutDown() }
        }
    }

    private func stopWatching() {
        guard let watched else { return }
        self.watched = nil
        loop.unwatch(watched.descriptor)
    }

    private static func interest(of watch: OpaquePointer) -> Readiness {
        guard unsafe dbus_watch_get_enabled(watch) != 0 else { return [] }
        let flags = unsafe dbus_watch_get_flags(watch)
        var interest: Readiness = []
        if flags & DBUS_WATCH_READABLE.rawValue != 0 { interest.insert(.readable) }
        if flags & DBUS_WATCH_WRITABLE.rawValue != 0 { interest.insert(.writable) }
        return interest
    }

    private func handle(_ ready: Readiness) {
        var left = Self.messagesPerTurn
        var count = 0
        // libdbus reads about ten messages at a time.
        repeat {
            readAndWrite(ready)
            count = dispatch(atMost: left)
            left -= count
        } while count > 0 && left > 0 && isConnected
        pauseIfBusy(after: Self.messagesPerTurn - left, isAll: left > 0)
    }

    private func readAndWrite(_ ready: Readiness) {
        let known = unsafe watches
        unsafe known.forEach { watch in
            guard unsafe watches.contains(watch), unsafe dbus_watch_get_enabled(watch) != 0 else { return }
            unsafe dbus_watch_handle(watch, ready.watchFlags)
        }
    }

    /// Nothing but what its handler called patient is kept waiting, and nobody who waits for a prompt answer.
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
            // The kernel need not be asked: if nothing has come, that is seen as well.
            handle(.readable)
            updateInterest()
        }
        updateInterest()
    }

    /// Reads again as soon as there is something.
    func endPause() {
        guard let timer = pauseEnd.take() else { return }
        loop.cancel(timer)
        updateInterest()
    }

    /// Sending may read, or find the bus gone: libdbus then removes its watches, and no descriptor would tell.
    private func dispatchWhatSendingBrought(_ handle: ConnectionHandle) {
        guard !isDispatching, unsafe dbus_connection_get_dispatch_status(handle.raw) != DBUS_DISPATCH_COMPLETE else {
            return
        }
        loop.schedule(after: .zero) { [self] in dispatch() }
    }

    /// Handles what has been read; what is too much for one turn has to wait for the next.
    ///
    /// - Returns: How many messages there were.
    @discardableResult
    private func dispatch(atMost limit: Int = messagesPerTurn) -> Int {
        guard let handle, !isDispatching else { return 0 }
        isDispatching = true
        var count = 0
        var status = unsafe dbus_connection_get_dispatch_status(handle.raw)
        while status == DBUS_DISPATCH_DATA_REMAINS, count < limit, isConnected {
            status = unsafe dbus_connection_dispatch(handle.raw)
            count += 1
        }
        isDispatching = false
        guard isConnected, status != DBUS_DISPATCH_COMPLETE else { return count }
        let pause: Duration = status == DBUS_DISPATCH_NEED_MEMORY ? .milliseconds(100) : .zero
        loop.schedule(after: pause) { [self] in dispatch() }
        return count
    }
}

extension Readiness {
    fileprivate var watchFlags: UInt32 {
        (contains(.readable) ? DBUS_WATCH_READABLE.rawValue : 0)
            | (contains(.writable) ? DBUS_WATCH_WRITABLE.rawValue : 0)
            | (contains(.hangUp) ? DBUS_WATCH_HANGUP.rawValue : 0)
            | (contains(.error) ? DBUS_WATCH_ERROR.rawValue : 0)
    }
}

// MARK: - What libdbus calls

/// Borrows the core that drives the connection: libdbus calls only out of what the core calls.
private func core(_ context: UnsafeMutableRawPointer?) -> ConnectionCore? {
    unsafe context.map { unsafe Unmanaged<ConnectionCore>.fromOpaque($0).takeUnretainedValue() }
}

private let addWatch: DBusAddWatchFunction = { watch, context in
    guard let watch = unsafe watch else { return 1 }
    unsafe core(context)?.add(watch)
    return 1
}

private let removeWatch: DBusRemoveWatchFunction = { watch, context in
    guard let watch = unsafe watch else { return }
    unsafe core(context)?.remove(watch)
}

private let toggleWatch: DBusWatchToggledFunction = { _, context in
    unsafe core(context)?.updateInterest()
}

private let filter: DBusHandleMessageFunction = { _, message, context in
    guard let message = unsafe message, let core = unsafe core(context) else {
        return DBUS_HANDLER_RESULT_NOT_YET_HANDLED
    }
    return unsafe core.receive(message) ? DBUS_HANDLER_RESULT_HANDLED : DBUS_HANDLER_RESULT_NOT_YET_HANDLED
}
