import GattherdModel

@testable import GattherdMachines

/// A fault that affects 64 devices at once.
struct GroupFault: Sendable {
    let words: String
    let remedy: String
    let limit: Duration
    /// Causes the fault in a fresh world; the recovery is measured from then on.
    let begin: @Sendable (inout SupervisorWorld) -> Void

    static let all = [
        Self(
            words: "64 devices are switched on at once",
            remedy: "connects them one at a time",
            limit: .seconds(15),
            begin: { $0.start() }
        ),
        Self(
            words: "64 devices are switched on, and a fifth of all attempts fail",
            remedy: "retries failed devices later",
            limit: .seconds(45),
            begin: {
                $0.failureRate = 0.2
                $0.start()
            }
        ),
        Self(
            words: "64 links are lost at once",
            remedy: "spreads the attempts, connects one at a time",
            limit: .seconds(20),
            begin: { world in
                world.start()
                world.run(for: .seconds(60))
                for name in world.names { world.drop(name) }
            }
        ),
        Self(
            words: "bluetoothd is killed while 64 devices connect",
            remedy: "starts over with the new bluetoothd, finds unconnected devices by a scan",
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
            words: "the adapter is unplugged while 64 devices connect, and another one is present",
            remedy: "moves the devices to the other adapter",
            limit: .seconds(30),
            begin: { world in
                world.start()
                world.run(for: .seconds(3))
                world.unplug(world.adapter)
            }
        ),
    ]

    /// Returns the time from the fault until the last device is ready.
    func recovery(seed: UInt64) throws -> (time: Duration?, world: SupervisorWorld) {
        var world = try SupervisorWorld(devices: 64, adapters: words.contains("another") ? 2 : 1, seed: seed)
        begin(&world)
        return (world.run(for: .seconds(1000), until: \.isIdle), world)
    }
}
