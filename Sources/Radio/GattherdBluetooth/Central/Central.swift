import GattherdSync

/// The central role of Bluetooth Low Energy on this machine: scans, connects, lists peripherals.
///
/// A central works while ``run()`` runs. All its values may be used from any task and any actor.
///
/// Everything that throws here, and in ``Peripheral``, throws ``BluetoothError``. The signatures do not say so, because
/// Swift 6.3 crashes on functions that catch a typed error under a condition and loop over a sequence.
public final class Central: Sendable {
    /// The choice of an adapter.
    public enum AdapterChoice: Hashable, Sendable {
        /// The first one that is on.
        case automatic
        case address(BluetoothAddress)
        /// The kernel's name, for example `hci0`, which may belong to another adapter after a restart.
        case name(String)
    }

    public struct Configuration: Sendable {
        public var adapter = AdapterChoice.automatic
        /// The limit of connecting, which includes the scan for an unknown peripheral.
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
    let registry = Locked(CentralRegistry())
    /// Held while observers are updated from the registry, which is not locked meanwhile.
    let telling = Locked(())
    let life = LatestValue(CentralLifecycle.new)
    let stateBoard = LatestValue(CentralState.unknown)
    let discovery = LatestValue<DiscoveryRequest?>(nil)
    let connectionChanges = Broadcast<ConnectionStateChange>()
    private let jobs: AsyncStream<@Sendable () async -> Void>
    private let addJob: AsyncStream<@Sendable () async -> Void>.Continuation

    /// Creates a central on a platform of your own; `withCentral` and `Central.system` create one on BlueZ.
    public init(backend: any ClientBackend, configuration: Configuration = Configuration()) {
        self.backend = backend
        self.configuration = configuration
        // Bounded by what causes jobs: one for each sequence that ends and each link that is lost.
        (jobs, addJob) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    // MARK: - Life

    /// Keeps the central alive until ``close()``, or until its task is cancelled.
    ///
    /// All background work of the central has ended when this returns.
    public func run() async {
        let life = Task { await live() }
        await withTaskCancellationHandler {
            await life.value
        } onCancel: {
            Task { await close() }
        }
    }

    private func live() async {
        life.update { if $0 == .new { $0 = .running } }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.backend.run() }
            group.addTask { for await event in self.backend.events { self.handle(event) } }
            group.addTask { await self.driveDiscovery() }
            for await job in jobs { group.addTask { await job() } }
            group.cancelAll()
        }
    }

    /// Runs the central for as long as `body` runs, and returns its value; all background work has ended then.
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

    /// Ends everything; links are ended too unless ``Configuration/keepsLinks`` or ``detach(_:)`` says otherwise.
    ///
    /// All sequences end, and what is asked for later fails. What the central does by itself has ended when ``run()``
    /// returns.
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
        // Its state is another one now.
        update { _ in }
        await endLinks()
        endSequences()
        await backend.close()
        addJob.finish()
    }
}
