import GattherdModel

@testable import GattherdMachines

/// What goes wrong with 64 devices at once.
struct HerdFault: Sendable {
    let words: String
    let remedy: String
    let limit: Duration
    /// Brings it about in a fresh world; what follows is measured.
    let begin: @Sendable (inout SupervisorWorld) -> Void

    static let all = [
        Self(
            words: "64 devices are switched on at once",
            remedy: "connects them one after the other",
            limit: .seconds(15),
            begin: { $0.start() }
        ),
        Self(
            words: "64 devices, and a fifth of all attempts fails",
            remedy: "who failed comes later",
            limit: .seconds(45),
            begin: {
                $0.failureRate = 0.2
                $0.start()
            }
        ),
        Self(
            words: "64 links are lost at once",
            remedy: "spreads the attempts, connects one after the other",
            limit: .seconds(20),
            begin: { world in
                world.start()
                world.run(for: .seconds(60))
                for name in world.names { world.drop(name) }
            }
        ),
        Self(
            words: "bluetoothd is killed while 64 devices connect",
            remedy: "begins anew with its successor; who had no link yet is found by a scan",
            limit: .seconds(20),
            begin: { world in
                world.start()
                world.run(for: .seconds(5))
                world.killDaemon()
                world.run(for: .seconds(1))
                world.restartDaemon()
            }
        ),
        Self(
            words: "the adapter is unplugged while 64 devices connect, another one is there",
            remedy: "the other one takes them",
            limit: .seconds(30),
            begin: { world in
                world.start()
                world.run(for: .seconds(3))
                world.unplug(world.adapter)
            }
        ),
    ]

    /// From the fault to the last device that is ready.
    func recovery(seed: UInt64) throws -> (time: Duration?, world: SupervisorWorld) {
        var world = try SupervisorWorld(devices: 64, adapters: words.contains("another") ? 2 : 1, seed: seed)
        begin(&world)
        return (world.run(for: .seconds(1000), until: \.isSettled), world)
    }
}
