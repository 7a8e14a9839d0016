package import GattherdLog
package import GattherdModel
import GattherdSync

/// Publishes every reading of the journal and the devices' state as a Sparkplug B edge node, and accepts commands.
///
/// The output has a thread of its own, shared with its connection. See ``SparkplugMachine`` for its guarantees.
package actor SparkplugDelivery {
    package typealias ControlHandler = @Sendable (ControlRequest) async -> Result<ControlValue, ControlError>
    /// Receives the members of a ``LifecycleEvent`` about the broker connection; never blocks.
    package typealias EventHandler = @Sendable (KeyValuePairs<String, SampleValue?>) -> Void
    /// Returns true if this gateway publishes the readings of an advertising device at a time.
    package typealias PublisherCheck = @Sendable (_ device: String, Timestamp) -> Bool

    nonisolated let counters = SparkplugCounters()
    package nonisolated let name: String
    package nonisolated var kind: String { SparkplugOutput.section }
    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe time.loop.asUnownedSerialExecutor() }

    private nonisolated let time: LoopTime
    private nonisolated let board: SparkplugBoard
    private nonisolated let controls: ControlWriter
    private nonisolated let permissions: @Sendable () -> ControlPermissions
    private let runner: SparkplugRunner
    /// The devices that hosts see as born; only the loop changes them, so that their events keep the order.
    private var presence = PublishedDevices()

    /// Creates the output without a connection; see ``run()``.
    ///
    /// - Parameters:
    ///   - options: The broker and the rules.
    ///   - journal: The journal, with the cursor `sparkplug`.
    ///   - log: The log for people.
    ///   - setControl: Sets a control; may suspend while others are set.
    ///   - permissions: Returns the controls that may be set now.
    ///   - isPublisher: Selects the advertisements that are published; `nil` for all.
    ///   - record: Records the events of the connection.
    package init(
        _ options: SparkplugOptions,
        journal: any JournalConsumer,
        log: Log,
        setControl: @escaping ControlHandler,
        permissions: @escaping @Sendable () -> ControlPermissions = { ControlPermissions() },
        isPublisher: PublisherCheck? = nil,
        record: @escaping EventHandler
    ) {
        self.permissions = permissions
        var options = options
        options.permissions = permissions()
        name = options.name
        time = LoopTime(EventLoop(name: "sparkplug"))
        board = SparkplugBoard(options)
        let logger = SparkplugLogger(options, counters, log, record)
        controls = ControlWriter(logger, permissions: permissions, set: setControl)
        runner = SparkplugRunner(options, time, journal, controls, logger, board, isPublisher: isPublisher)
    }

    deinit {
        time.loop.stop()
    }

    private nonisolated func step(_ event: SparkplugMachine.Event) {
        time.loop.execute { self.assumeIsolated { $0.runner.step(event) } }
    }

    private func followHead() async {
        await runner.followHead()
    }

    private func run(_ job: SparkplugRunner.Job) async {
        await runner.run(job)
    }

    private func controlWasSet(_ request: ControlRequest, _ value: ControlValue) {
        runner.step(.controlSet(request, value))
    }

    private func apply(_ status: LinkStatus) {
        let isOnline = presence.set(status.isOnline, of: status.device)
        runner.step(.link(device: status.device, isOnline: isOnline))
    }

    private func apply(_ lease: DeviceLease) {
        let isOnline = presence.setPublisher(lease.isPublisher, of: lease.device)
        if let isOnline { runner.step(.link(device: lease.device, isOnline: isOnline)) }
    }

    private func applyRemoval(of device: String) {
        presence.remove(device)
        runner.step(.removed(device: device))
    }

    private func applyPermissions() {
        runner.step(.permitted(permissions()))
    }
}

extension SparkplugDelivery: Output {
    package nonisolated var status: OutputStatus { board.status }
    /// The current state and each newer one.
    nonisolated var states: AsyncStream<OutputStatus.State> { board.states.watch() }

    /// Publishes until ``stop(within:)`` or until its task is cancelled; once only.
    package func run() async {
        let executor = LoopTaskExecutor(time.loop)
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                runner.step(.start)
                group.addTask(executorPreference: executor) { await self.followHead() }
                group.addTask { await self.controls.serve { await self.controlWasSet($0, $1) } }
                while let job = await runner.nextJob() {
                    group.addTask(executorPreference: executor) { await self.run(job) }
                }
                group.cancelAll()
            }
        } onCancel: {
            step(.stop(drain: .zero))
        }
    }

    package func roundTrip() {}

    package nonisolated func stop(within limit: Duration) async {
        step(.stop(drain: limit))
        for await status in board.states.watch() where status == .stopped { return }
    }
}

extension SparkplugDelivery: Counting {
    package nonisolated var allCounters: [Counter] { counters.all }
}

extension SparkplugDelivery: Announcer {
    package nonisolated func update(_ status: LinkStatus) {
        time.loop.execute { self.assumeIsolated { $0.apply(status) } }
    }

    /// Publishes the death of the device when another gateway takes over its publishing, and a birth when this one
    /// does.
    package nonisolated func update(_ lease: DeviceLease) {
        time.loop.execute { self.assumeIsolated { $0.apply(lease) } }
    }

    package nonisolated func describe(_ device: DeviceDescription) {
        updatePermissions()
        step(.described(device))
    }

    package nonisolated func updatePermissions() {
        time.loop.execute { self.assumeIsolated { $0.applyPermissions() } }
    }

    package nonisolated func remove(device: String) {
        time.loop.execute { self.assumeIsolated { $0.applyRemoval(of: device) } }
    }

    /// Events are not part of Sparkplug.
    package nonisolated func announce(_ event: LifecycleEvent) {}
}

/// The devices that hosts see as born: those that are online, unless another gateway publishes them.
struct PublishedDevices: Sendable {
    private var online: [String: Bool] = [:]
    private var elsewhere: Set<String> = []

    /// Sets the state of a device, and returns the state that hosts see.
    mutating func set(_ isOnline: Bool, of device: String) -> Bool {
        online[device] = isOnline
        return isOnline && !elsewhere.contains(device)
    }

    /// Sets the publisher of a device, and returns the state that hosts see; `nil` if it does not change.
    mutating func setPublisher(_ isPublisher: Bool, of device: String) -> Bool? {
        guard isPublisher == elsewhere.contains(device) else { return nil }
        if isPublisher { elsewhere.remove(device) } else { elsewhere.insert(device) }
        guard online[device] == true else { return nil }
        return isPublisher
    }

    mutating func remove(_ device: String) {
        online[device] = nil
        elsewhere.remove(device)
    }
}

/// Writes the controls that hosts ask for: concurrently, started in the order of arrival, and a bounded number at once.
final class ControlWriter: Sendable {
    /// The maximum number of commands that are being written or wait for it.
    private static let most = 64

    private let logger: SparkplugLogger
    private let permissions: @Sendable () -> ControlPermissions
    private let set: SparkplugDelivery.ControlHandler
    private let count = Locked(0)
    /// The waiting requests; never full, as ``count`` is bounded as well.
    private let requests = AsyncStream.makeStream(of: ControlRequest.self, bufferingPolicy: .bufferingOldest(most))

    init(
        _ logger: SparkplugLogger,
        permissions: @escaping @Sendable () -> ControlPermissions,
        set: @escaping SparkplugDelivery.ControlHandler
    ) {
        self.logger = logger
        self.permissions = permissions
        self.set = set
    }

    /// Enqueues a request; false if too many are in progress, or if the control may no longer be set.
    func enqueue(_ request: ControlRequest) -> Bool {
        guard permissions().allows(request.control, of: request.device) else { return false }
        let hasRoom = count.withLock { count in
            guard count < Self.most else { return false }
            count += 1
            return true
        }
        if hasRoom { requests.continuation.yield(request) }
        return hasRoom
    }

    /// Writes controls until the task is cancelled; `done` receives each written value.
    @concurrent
    func serve(_ done: @escaping @Sendable (ControlRequest, ControlValue) async -> Void) async {
        await withDiscardingTaskGroup { group in
            for await request in requests.stream {
                group.addImmediateTask {
                    let result = await self.set(request)
                    self.count.withLock { $0 -= 1 }
                    switch result {
                    case .success(let value): await done(request, value)
                    case .failure(let error): self.logger.controlFailed(request, error)
                    }
                }
            }
        }
    }
}
