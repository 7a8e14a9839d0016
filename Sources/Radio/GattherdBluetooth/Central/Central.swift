public import GattherdLog
import GattherdSync

/// The central role of Bluetooth Low Energy on this machine, which scans, connects and lists peripherals.
///
/// A central works while ``run()`` runs. All its values may be used from any task and any actor.
///
/// All errors of this type and of ``Peripheral`` are ``BluetoothError``s. The signatures have untyped throws, because
/// Swift 6.3 crashes on functions that catch a typed error under a condition and loop over a sequence.
public final class Central: Sendable {
    /// The choice of an adapter.
    public enum AdapterChoice: Hashable, Sendable {
        /// The first adapter that is on.
        case automatic
        case address(BluetoothAddress)
        /// The kernel's name, for example `hci0`, which may belong to another adapter after a restart.
        case name(String)
    }

    public struct Configuration: Sendable {
        public var adapter = AdapterChoice.automatic
        /// The limit of connecting, which includes the scan for an unknown peripheral.
        ///
        /// An explicit attempt also includes the wait for its turn; an automatic one does not.
        public var connectTimeout = Duration.seconds(30)
        public var disconnectTimeout = Duration.seconds(15)
        /// The limit of each operation of a peripheral, which includes the wait for its turn.
        public var operationTimeout = Duration.seconds(15)
        /// The limit of discovering services.
        public var discoveryTimeout = Duration.seconds(35)
        /// The default of ``Central/connect(_:timeout:autoconnect:)-(Peripheral,_,_)``.
        public var autoconnect = Autoconnect.never
        /// The path of notifications.
        ///
        /// Indications, and characteristics without a socket, use signals anyway.
        public var notificationPath = NotificationPath.signals
        /// The default policy of notification sequences.
        public var buffering = BufferingPolicy.bufferingOldest(1024)
        /// True if links stay up when the central ends.
        public var keepsLinks = false

        public init() {}
    }

    let backend: any ClientBackend
    public let configuration: Configuration
    let log: Log
    let registry = Locked(CentralRegistry())
    /// The lock that is held while observers are updated from the registry, which is not locked meanwhile.
    let telling = Locked(())
    let life = LatestValue(CentralLifecycle.new)
    /// The life of the background work, which ends later than the central.
    private let work = LatestValue(CentralLifecycle.new)
    let stateBoard = LatestValue(CentralState.unknown)
    let poweredAdapters = LatestValue<Set<BluetoothAddress>>([])
    let discovery = LatestValue<DiscoveryRequest?>(nil)
    let connectionChanges = Broadcast<ConnectionStateChange>()
    /// The peripherals whose name, bond or signal strength has changed; `nil` for all.
    let statusUpdates = Broadcast<PeripheralID?>()
    /// The lock that is held while a change is made and published, so that streams start with the state before it.
    let publishing = Locked(())
    let turns: ConnectTurns
    let waits: WaitLimits
    private let jobs: AsyncStream<@Sendable () async -> Void>
    private let addJob: AsyncStream<@Sendable () async -> Void>.Continuation

    /// Creates a central on a custom platform; `withCentral` and `Central.system` create one on BlueZ.
    ///
    /// - Parameters:
    ///   - backend: The platform.
    ///   - configuration: The adapter, deadlines and policies.
    ///   - log: Called with each log entry, from any thread: changes of connections at `info`, operations with
    ///     their duration and result at `debug`, their bytes at `trace`.
    public convenience init(
        backend: any ClientBackend,
        configuration: Configuration = Configuration(),
        log: Log = .silent
    ) {
        self.init(backend, configuration, log, ConnectTurns())
    }

    init(
        _ backend: any ClientBackend,
        _ configuration: Configuration,
        _ log: Log,
        _ turns: ConnectTurns,
        _ waits: WaitLimits = WaitLimits()
    ) {
        self.backend = backend
        (self.turns, self.waits) = (turns, waits)
        self.log = log
        self.configuration = configuration
        // Bounded by the causes of jobs: one for each sequence that ends and each link that is lost.
        (jobs, addJob) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    // MARK: - Life

    /// Keeps the central alive until ``close()``, or until its task is cancelled.
    ///
    /// All background work of the central has ended when this returns. A second call waits for that, too.
    public func run() async {
        let life = Task { await live() }
        await withTaskCancellationHandler {
            await life.value
        } onCancel: {
            Task { await close() }
        }
    }

    private func live() async {
        var isFirst = false
        work.update { work in
            guard work == .new else { return }
            (work, isFirst) = (.running, true)
        }
        guard isFirst else { return await waitForEnd() }
        defer { work.set(.closed) }
        life.update { if $0 == .new { $0 = .running } }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.backend.run() }
            group.addTask { for await event in self.backend.events { self.handle(event) } }
            group.addTask { await self.driveDiscovery() }
            for await job in jobs { group.addTask { await job() } }
            group.cancelAll()
        }
    }

    private func waitForEnd() async {
        for await work in work.watch() where work == .closed { return }
    }

    /// Runs the central while `body` runs; returns the value of `body` after all background work has ended.
    public func run<Value, Failure: Error>(
        _ body: (Central) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withTaskGroup(of: Void.self) { group -> Result<Value, Failure> in
            group.addTask { await self.run() }
            let result: Result<Value, Failure>
            do throws(Failure) {
                result = .success(try await body(self))
            } catch {
                result = .failure(error)
            }
            await close()
            return result
        }
        return try result.get()
    }

    /// Ends all operations, and all links except those kept by ``Configuration/keepsLinks`` or ``detach(_:)``.
    ///
    /// All sequences end, and later calls fail. Background work has ended when ``run()`` returns.
    public func close() async {
        // A cancelled task would not wait for the links to end.
        await Task { await shutDown() }.value
    }

    /// Runs an operation in the background, as a part of ``run()``.
    func inBackground(_ job: @escaping @Sendable () async -> Void) {
        addJob.yield(job)
    }

    private func shutDown() async {
        guard registry.withLock({ $0.close() }) else { return }
        life.set(.closed)
        // The state has changed meanwhile.
        update { _ in }
        await endLinks()
        endSequences()
        releaseClosures()
        await backend.close()
        addJob.finish()
    }
}

/// The phases of a central's life.
enum CentralLifecycle: Equatable, Sendable {
    /// ``Central/run()`` was not called yet.
    case new
    case running
    case closed
}

/// The limits of waits for events that normally follow within milliseconds.
struct WaitLimits: Sendable {
    /// The longest wait for the start of a task that calls ``Central/run()``.
    var start = Duration.seconds(1)
    /// The time in which the events of the adapters follow that of bluetoothd's arrival: after it there are none.
    var adapters = Duration.milliseconds(100)
    /// The longest wait for the reason of a link's end, which is published a moment after the end.
    var endReason = Duration.seconds(1)
}

extension Central {
    /// Waits until the central runs, because ``run()`` may have been called in a task that has not started yet.
    ///
    /// - Throws: `serviceUnavailable` if it does not run or is closed; `cancelled`.
    func awaitRun() async throws(BluetoothError) {
        guard life.state != .running else { return }
        let isRunning = try await withDeadline(.now.advanced(by: waits.start), unreadiness) {
            [life] () throws(BluetoothError) in
            for await state in life.watch() where state != .new { return state == .running }
            return nil
        }
        guard let isRunning else { throw BluetoothError(.cancelled, "cancelled") }
        guard isRunning else { throw unreadiness }
    }

    /// True since ``close()`` was called.
    var isClosed: Bool { registry.withLock { $0.isClosed } }

    /// Releases connection tasks and policies, whose objects may own this central.
    fileprivate func releaseClosures() {
        let (tasks, links) = registry.withLock { ($0.removeConnectionTasks(), Array($0.links.values)) }
        let policies = links.map { link in
            link.state.withLock { state in
                defer { state.autoconnect = .never }
                return state.autoconnect
            }
        }
        // Not before the locks are free.
        withExtendedLifetime((tasks, policies)) {}
    }

    /// Finishes all sequences, also of later consumers.
    func endSequences() {
        let (scanners, links) = registry.withLock { ($0.scanners.removeAll(), Array($0.links.values)) }
        for scanner in scanners { scanner.mailbox.finish() }
        for link in links { link.close() }
        connectionChanges.finish()
        statusUpdates.finish()
        stateBoard.finish()
        poweredAdapters.finish()
    }
}
