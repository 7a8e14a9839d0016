import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles
import GattherdSimulator

/// The files of a simulation, and the hints for the user.
struct SimulationFiles: Sendable {
    let folder: SimulationFolder
    /// The address of the simulator's bus.
    let bus: String
    /// The port of the broker.
    let port: UInt16
    /// The port of the HTTP console.
    let httpPort: UInt16

    /// The first line of generated files; only files with it may be replaced.
    static let mark = "# Written by gattherd simulate, which replaces it."
    static let configurationName = "gattherd.yaml"
    static let brokerConfigurationName = "mosquitto.conf"
    static let databaseName = "history.db"
    var configurationPath: String { folder.file(Self.configurationName) }
    /// The path of the database, as the daemon chooses it.
    var socketPath: String { databasePath + ".sock" }
    static let tokenName = "http-token"
    /// A random token that other users of the host cannot guess.
    static var token: String {
        (0..<4).map { _ in String(UInt64.random(in: .min ... .max) | 1 << 63, radix: 16) }.joined() + "\n"
    }
    private var databasePath: String { folder.file(Self.databaseName) }

    static func brokerConfiguration(_ port: UInt16) -> String {
        """
        \(mark)
        listener \(port) 127.0.0.1
        allow_anonymous true
        persistence false
        log_dest stderr
        user root

        """
    }

    func configuration(_ peripherals: [PeripheralSpec]) -> String {
        let profiles = InstalledProfiles.load().profiles
        let devices = peripherals.map { peripheral in
            let profile = peripheral.profile(of: profiles).map { ", profiles: [\($0)]" } ?? ""
            return "  - {name: \(peripheral.name.lowercased()), address: \(peripheral.address)\(profile)}\n"
        }
        return """
            \(Self.mark)
            gateway: simulated
            bluetooth:
              bus: '\(bus)'
            history:
              path: \(Self.databaseName)
            mqtt:
              url: mqtt://127.0.0.1:\(port)
            http:
              listen: 127.0.0.1:\(httpPort)
              token_file: \(Self.tokenName)
            log:
              format: text
            devices:
            \(devices.joined())
            """
    }

    /// The commands that show the running simulation.
    var directions: String {
        let simulator = "\(OwnProgram.words)-sim"
        return """

            Look at it in a browser; its buttons want the token that is in \(folder.file(Self.tokenName)):
              http://127.0.0.1:\(httpPort)/
            or from another terminal:
              mosquitto_sub -h 127.0.0.1 -p \(port) -t 'gattherd/#' -v
              sqlite3 \(databasePath) 'SELECT * FROM history ORDER BY ts DESC LIMIT 10'
              \(OwnProgram.words) status --config \(configurationPath)
              tail -f \(folder.file("gattherd.log"))
            Trouble it, for example with one of the names that status shows:
              \(simulator) ctl --bus '\(bus)' drop NAME
            Ctrl-C ends it.

            """
    }
}

extension PeripheralSpec {
    /// Returns the profile of the peripheral's advertisements; `nil` if it is connectable.
    fileprivate func profile(of profiles: [any Profile]) -> String? {
        guard services.isEmpty else { return nil }
        let frames =
            advertising.manufacturerData.map { (AdvertisementSource.manufacturer($0.key), $0.value) }
            + advertising.serviceData.map { (.serviceData($0.key), $0.value) }
        return profiles.first { profile in
            frames.contains { source, payloads in
                payloads.contains { profile.frame($0, from: source, name: advertising.name) != nil }
            }
        }?.name
    }
}
