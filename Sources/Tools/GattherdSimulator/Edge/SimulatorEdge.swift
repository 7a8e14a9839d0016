import GattherdDBus
import GattherdSync

/// Runs ``VirtualSite`` in real time, and passes its effects to the gateways.
///
/// Confined to the loop's thread.
final class SimulatorEdge {
    private let site: VirtualSite
    private let loop: EventLoop
    private let truth: TruthLog?
    private let start = SuspendingClock.now
    private var gateways: [GatewayEdge] = []
    private var timer: (due: Duration, timer: LoopTimer)?

    /// - Parameters:
    ///   - scenario: The gateways and peripherals.
    ///   - loop: The event loop.
    ///   - truth: The log of the events at the peripherals.
    ///   - jobs: Receives the asynchronous jobs, for each gateway.
    init(
        _ scenario: Scenario,
        on loop: EventLoop,
        truth: TruthLog?,
        jobs: [AsyncStream<SimulatorJob>.Continuation]
    ) {
        site = VirtualSite(scenario)
        self.loop = loop
        self.truth = truth
        for (number, (gateway, jobs)) in zip(scenario.allGateways, jobs).enumerated() {
            let edge = GatewayEdge(gateway.name, on: loop, truth: truth, jobs: jobs) { [weak self] event in
                self?.handle(event, of: number)
            }
            gateways.append(edge)
        }
    }

    private var now: Duration { SuspendingClock.now - start }

    /// Serves the objects of a gateway's bluetoothd on `connection`.
    func serve(_ connection: DBusConnection, of gateway: Int) {
        gateways[gateway].serve(connection)
    }

    /// Performs an order at a gateway.
    func perform(_ order: SimulatorOrder, at gateway: Int) throws(SimulatorOrderError) {
        handle(.control(try OrderResolver(site.gateways[gateway].world).command(for: order)), of: gateway)
    }

    /// Handles the reply of an agent.
    func receive(_ answer: AgentAnswer, to request: UInt64, of gateway: Int) {
        handle(.agentAnswered(request, answer), of: gateway)
    }

    var status: DBusValue { site.status }

    /// Ends the simulation, and closes the sockets and drops the calls of a gateway.
    func shutDown(_ gateway: Int) {
        if let timer { loop.cancel(timer.timer) }
        timer = nil
        gateways[gateway].shutDown()
        truth?.flush()
    }

    private func handle(_ event: VirtualBlueZ.Event, of gateway: Int) {
        execute(site.handle(event, of: gateway, at: now))
    }

    private func execute(_ outputs: [VirtualSite.Output]) {
        for output in outputs { gateways[output.gateway].execute(output.effect) }
        truth?.flush()
        armTimer()
    }

    /// Arms one timer for the state machine's next deadline.
    func armTimer() {
        guard let due = site.nextDeadline, due < timer?.due ?? .seconds(Int64.max) else { return }
        if let timer { loop.cancel(timer.timer) }
        let handle = loop.schedule(after: due - now) { [weak self] in
            guard let self else { return }
            timer = nil
            execute(site.advance(to: now))
        }
        timer = (due, handle)
    }
}
