import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdModel
import Testing

@Suite struct ConfigurationTests {
    @Test(arguments: ["", "# nothing\n", "devices: []", "bluetooth:\nhistory: {}\n", "gateway: ${NOTHING:-}\n"])
    func `missing keys have defaults`(text: String) throws {
        let parsed = try parse(text)
        #expect(parsed == Configuration(gateway: "lab-1", database: "gattherd.db"))
        #expect(parsed.bluetooth.connectTimeout == .seconds(20))
        #expect(parsed.history.commitInterval == .milliseconds(100))
        #expect(parsed.history.keep.samples == .atLeast(.seconds(30 * 86_400)))
        #expect(parsed.history.maxSize == 2_147_483_648)
        #expect(parsed.mqtt == nil)
    }

    @Test func `every key is read`() throws {
        let configuration = try parse(everything)
        let address = try #require(BluetoothAddress("C0:FF:EE:00:00:01"))
        #expect(configuration.gateway == "roof")
        #expect(configuration.bluetooth.bus == .address("unix:path=/run/bus"))
        #expect(configuration.bluetooth.adapters == .only([address]))
        #expect(configuration.bluetooth.connectTimeout == .milliseconds(1500))
        #expect(configuration.bluetooth.keepsLinksOnStop)
        #expect(!configuration.bluetooth.mayPowerCycle)
        #expect(configuration.profiles.paths?.map(\.value) == ["/usr/lib/x", "mine"])
        let device = try #require(configuration.devices.first)
        #expect(device.name.value == "strap")
        #expect(device.address.value == address)
        #expect(device.profiles?.map(\.value) == ["heart-rate"])
        #expect(device.adapter?.value == address)
        #expect(device.pinFile?.value == "/run/pin")
        #expect(device.pairing == .passkey)
        #expect(device.onBondLoss == .repair)
        let rule = try #require(configuration.enrol.first)
        #expect(rule.match.service == BluetoothUUID(0x180D))
        #expect(rule.match.name == NamePattern("Polar*"))
        #expect(rule.match.rssiAtLeast == -85)
        #expect(rule.name == "{profile}-{address}")
        #expect(rule.forgetAfter == .atLeast(.seconds(2 * 86_400)))
        #expect(configuration.history.path.value == "h.db")
        #expect(configuration.history.keep.minutes == .forever)
        #expect(configuration.history.maxSize == 500_000_000)
        #expect(configuration.history.whenFull == .hold)
        #expect(configuration.history.backlog.keep == .atLeast(.seconds(7 * 86_400)))
        #expect(configuration.history.backlog.maxSize == 100_000_000)
        let mqtt = try #require(configuration.mqtt)
        #expect(mqtt.broker == BrokerAddress(host: "::1", port: 1884))
        #expect(mqtt.version == .v311)
        #expect(mqtt.clientID == "me")
        #expect(mqtt.username == "user")
        #expect(mqtt.passwordFile?.value == "secret")
        #expect(!mqtt.retains)
        #expect(mqtt.backlogRate == 500)
        #expect(!mqtt.homeAssistant.isDiscoverable)
        #expect(mqtt.homeAssistant.prefix == "ha")
        #expect(configuration.http?.listen == ListenAddress(host: "::1", port: 8780))
        #expect(configuration.http?.tokenFile?.value == "token")
        #expect(configuration.http?.hosts == ["gateway.lan"])
        #expect(configuration.http?.hasSampleMetrics == true)
        #expect(configuration.log.level == .trace)
        #expect(configuration.log.format == .json)
    }

    private let everything = """
        gateway: roof
        bluetooth:
          bus: unix:path=/run/bus
          adapters: [C0:FF:EE:00:00:01]
          connect_timeout: 1.5s
          keep_links_on_stop: true
          power_cycle: false
        profiles: {paths: [/usr/lib/x, mine]}
        devices:
          - {name: strap, address: "c0:ff:ee:00:00:01", profiles: [heart-rate], pin_file: /run/pin,
             adapter: "C0:FF:EE:00:00:01", on_bond_loss: repair}
        enrol:
          - {match: {service: 180d, name: "Polar*", rssi_at_least: -85}, name: "{profile}-{address}",
             forget_after: 2d}
        history:
          {path: h.db, commit_interval: 50ms, keep: {samples: 1d, minutes: forever, hours: 2y}, max_size: 500MB,
           when_full: hold, backlog: {keep: 7d, max_size: 100MB}}
        mqtt:
          url: mqtt://[::1]:1884/
          version: 3.1.1
          client_id: me
          username: user
          password_file: secret
          retain: false
          backlog_rate: 500
          home_assistant: {discovery: false, prefix: ha}
        http: {listen: "[::1]:8780", token_file: token, hosts: [gateway.lan], sample_metrics: true}
        log: {level: trace, format: json}
        """

    @Test func `publishing is refined from the broker to the device to the stream`() throws {
        let text = """
            mqtt: {url: 'mqtt://a', publish: {on_change: true, heartbeat: 1h, deadband: 2}}
            devices:
              - name: a
                address: C0:FF:EE:00:00:01
                publish:
                  heartbeat: 10m
                  streams:
                    air: {deadband: {t: 0.5, h: 3}, qos: 0, retain: false, scalar: true, expiry: 1d, min_interval: 1s}
            """
        let configuration = try parse(text)
        let base = try #require(configuration.mqtt?.publish)
        let device = try #require(configuration.devices.first?.publish)
        let common = device.all.refining(base)
        #expect(common.isOnChange == true && common.heartbeat == .seconds(600) && common.deadband == 2)
        let air = try #require(device.streams[Located("air")]).refining(common)
        #expect(air.deadbands == [Located("t"): 0.5, Located("h"): 3])
        #expect(air.qos == .zero && air.retains == false && air.hasScalars == true)
        #expect(air.expiry == .seconds(86_400) && air.minimumInterval == .seconds(1) && air.isOnChange == true)
    }

    @Test func `batches are refined and turned off like other rules`() throws {
        let text = """
            mqtt: {url: 'mqtt://a', publish: {batch: 100ms}}
            devices:
              - {name: a, address: C0:FF:EE:00:00:01, publish: {streams: {air: {batch: off}, light: {batch: 2s}}}}
            """
        let configuration = try parse(text)
        let base = try #require(configuration.mqtt?.publish)
        let device = try #require(configuration.devices.first?.publish)
        #expect(device.all.refining(base).batch == .milliseconds(100))
        #expect(device.streams[Located("air")]?.refining(base).batch == .zero)
        #expect(device.streams[Located("light")]?.refining(base).batch == .seconds(2))
    }

    @Test func `the base topic is the gateway's name below gattherd, or any levels`() throws {
        #expect(try parse("gateway: lab\nmqtt: {url: 'mqtt://a'}").mqtt?.baseTopic == "gattherd/lab")
        let text = "gateway: lab\nmqtt: {url: 'mqtt://a', base_topic: acme/site 1/lab, descriptions: true}"
        #expect(try parse(text).mqtt?.baseTopic == "acme/site 1/lab")
        #expect(try parse(text).mqtt?.publishesDescriptions == true)
        #expect(try parse(text).mqtt?.clientID == "gattherd-lab")
    }

    @Test func `a deadband for all metrics replaces wider ones by metric`() throws {
        let text = """
            mqtt: {url: 'mqtt://a', publish: {deadband: {t: 1}}}
            devices:
              - {name: a, address: C0:FF:EE:00:00:01, publish: {deadband: 0.1, streams: {air: {deadband: {h: 3}}}}}
            """
        let configuration = try parse(text)
        let base = try #require(configuration.mqtt?.publish)
        let device = try #require(configuration.devices.first?.publish)
        let common = device.all.refining(base)
        #expect(common.deadband == 0.1 && common.deadbands.isEmpty)
        let air = try #require(device.streams[Located("air")]).refining(common)
        #expect(air.deadband == 0.1 && air.deadbands == [Located("h"): 3])
        #expect(PublishSettings().refining(base).deadbands == [Located("t"): 1])
    }

    @Test(arguments: ["${AUTO}", "${NOTHING:-auto}", "'${AUTO}'", "${NOTHING:-}"])
    func `the word auto may come from a variable`(adapters: String) throws {
        let parsed = try parse("bluetooth:\n  adapters: \(adapters)\n", ["AUTO": "auto"])
        #expect(parsed.bluetooth.adapters == .auto)
    }

    @Test func `MQTT may set all controls, none, or those of a list`() throws {
        let text = """
            mqtt: {url: 'mqtt://a', controls: false}
            devices: [{name: a, address: C0:FF:EE:00:00:01, controls: [led]}]
            """
        let configuration = try parse(text)
        #expect(configuration.mqtt?.setsControls == false)
        #expect(configuration.devices.first?.controls?.map(\.value) == ["led"])
        let plain = try parse("mqtt: {url: 'mqtt://a'}\ndevices: [{name: a, address: C0:FF:EE:00:00:01}]")
        #expect(plain.mqtt?.setsControls == true && plain.devices.first?.controls == nil)
    }

    @Test func `the section of TLS is read, with paths relative to the main file`() throws {
        let text = """
            mqtt:
              url: mqtts://broker.lan
              tls: {ca: ca.pem, certificate: /c.pem, key: k.pem, server_name: "fe80::1", min_version: 1.3}
            """
        let settings = try #require(try parse([ConfigSource(name: "/e/g.yaml", text: text)]).mqtt)
        #expect(settings.broker == BrokerAddress(host: "broker.lan", port: 8883, usesTLS: true))
        #expect(settings.tls.ca?.value == "/e/ca.pem")
        #expect(settings.tls.certificate?.value == "/c.pem")
        #expect(settings.tls.key?.value == "/e/k.pem")
        #expect(settings.tls.serverName == "fe80::1")
        #expect(settings.tls.minimumVersion == .v13)
        #expect(try parse("mqtt: {url: 'mqtts://a'}").mqtt?.tls == MQTTSettings.TLS())
    }

    @Test(arguments: PairingChoice.allCases)
    func `each pairing method is read, and on demand is the default`(choice: PairingChoice) throws {
        let pin = choice == .passkey ? ", pin_file: p" : ""
        let text = """
            devices:
              - {name: a, address: "C0:FF:EE:00:00:01", pairing: \(choice.rawValue)\(pin)}
              - {name: b, address: "C0:FF:EE:00:00:02"}
            """
        let devices = try parse(text).devices
        #expect(devices.map(\.pairing) == [choice, .onDemand])
        #expect(devices.map(\.onBondLoss) == [.fail, .fail])
    }

    @Test func `relative paths start from the folder of the main file`() throws {
        let main = ConfigSource(
            name: "/etc/g/main.yaml",
            text: "mqtt: {url: 'mqtt://a', username: u, password_file: p}"
        )
        let other = ConfigSource(name: "/etc/g/gattherd.d/a.yaml", text: "profiles: {paths: [x, ../y, /z]}")
        let configuration = try parse([main, other])
        #expect(configuration.history.path.value == "/var/lib/gattherd/gattherd.db")
        #expect(configuration.mqtt?.passwordFile?.value == "/etc/g/p")
        #expect(configuration.profiles.paths?.map(\.value) == ["/etc/g/x", "/etc/g/../y", "/z"])
    }

    @Test(arguments: [("/var/lib/g", "/var/lib/g/gattherd.db"), ("/a:/b", "/a/gattherd.db"), ("", "mine/gattherd.db")])
    func `history is in the state directory if systemd gives one`(state: String, path: String) throws {
        let source = ConfigSource(name: "mine/gattherd.yaml", text: "gateway: x")
        #expect(try parse([source], ["STATE_DIRECTORY": state]).history.path.value == path)
    }

    @Test func `lists of devices are joined, other keys are set once`() throws {
        let main = ConfigSource(name: "g.yaml", text: "gateway: a\ndevices: [{name: a, address: C0:FF:EE:00:00:01}]\n")
        let more = ConfigSource(
            name: "gattherd.d/b.yaml",
            text: "log: {level: info}\ndevices: [{name: b, address: C0:FF:EE:00:00:02}]\n"
        )
        #expect(try parse([main, more]).devices.map(\.name.value) == ["a", "b"])
        let again = ConfigSource(name: "gattherd.d/c.yaml", text: "\ngateway: b\nlog: {level: info, format: text}\n")
        let found = errors(in: [main, more, again])
        #expect(
            found.map(\.description.firstLine) == [
                "gattherd.d/c.yaml:2:1: error: 'gateway' is set at g.yaml:1:1 already; keep one of the two",
                "gattherd.d/c.yaml:3:7: error: 'level' is set at gattherd.d/b.yaml:1:7 already; keep one of the two",
            ]
        )
    }

    @Test(arguments: [
        ("gattherd.yaml", "/etc/gattherd"), ("./gattherd.yaml", "/etc/gattherd"), ("gattherd/a.yaml", "/etc"),
    ])
    func `the history of a configuration in etc is that of the service, also with a relative path`(
        path: String,
        folder: String
    ) throws {
        let environment = ConfigEnvironment(variables: [:], hostName: "h", currentFolder: folder)
        let source = ConfigSource(name: path, text: "gateway: a\n")
        let configuration = try Configuration.parse([source], in: environment, outputs: [])
        #expect(configuration.history.path.value == "/var/lib/gattherd/gattherd.db")
        let elsewhere = ConfigEnvironment(variables: [:], hostName: "h", currentFolder: "/srv")
        let other = try Configuration.parse([ConfigSource(name: "a.yaml", text: "")], in: elsewhere, outputs: [])
        #expect(other.history.path.value == "gattherd.db")
    }

    @Test func `a duplicate is found across files`() {
        let main = ConfigSource(name: "g.yaml", text: "devices: [{name: a, address: C0:FF:EE:00:00:01}]\n")
        let more = ConfigSource(name: "h.yaml", text: "devices: [{name: a, address: C0:FF:EE:00:00:02}]\n")
        #expect(
            errors(in: [main, more]).map(\.description.firstLine) == [
                "h.yaml:1:18: error: the name 'a' is used at g.yaml:1:18 already; give each its own"
            ]
        )
    }

    @Test func `a device with an unused adapter is an error`() {
        let text = """
            bluetooth: {adapters: [00:00:5E:00:53:00]}
            devices:
              - {name: a, address: C0:FF:EE:00:00:01, adapter: 00:00:5E:00:53:00}
              - {name: b, address: C0:FF:EE:00:00:02, adapter: 00:00:5E:00:53:01}
            """
        #expect(
            errors(in: text).map(\.description.firstLine) == [
                "gattherd.yaml:4:52: error: 'adapters' in 'bluetooth' does not name 00:00:5E:00:53:01; "
                    + "add it, or leave 'adapter' out"
            ]
        )
    }

    @Test func `leases need a database, and gateways of a device need leases`() throws {
        #expect(
            errors(in: "fleet: {leases: true}").map(\.description.firstLine) == [
                "gattherd.yaml:1:17: error: the leases are in the central database; add the section 'postgres'"
            ]
        )
        let device = "devices: [{name: a, address: C0:FF:EE:00:00:01, gateways: [attic, cellar]}]\n"
        #expect(errors(in: device).map(\.problem.kind) == ["conflict"])
        let text = device + "fleet: {leases: true, publish: all}\npostgres: {url: postgresql:///gattherd}"
        let parsed = try parse(text)
        #expect(parsed.fleet.hasLeases && parsed.fleet.publisher == .all)
        #expect(parsed.devices.first?.gateways?.map(\.value) == ["attic", "cellar"])
        #expect(try !parse("").fleet.hasLeases)
        let nowhere = text.replacing("[attic, cellar]", with: "[]")
        #expect(
            errors(in: nowhere).map(\.description.firstLine) == [
                "gattherd.yaml:1:49: error: no gateway may own the device; name one, or leave 'gateways' out"
            ]
        )
    }

    @Test func `a list of gateways that the centre would ignore for its length is an error`() throws {
        let rest = "fleet: {leases: true}\npostgres: {url: postgresql:///gattherd}"
        // Each name has 63 bytes, and a comma after it but the last.
        for (count, kinds) in [(64, [String]()), (65, ["conflict"])] {
            let names = (10..<(10 + count)).map { String(repeating: "x", count: 61) + "\($0)" }
            let list = names.joined(separator: ", ")
            let device = "devices: [{name: a, address: C0:FF:EE:00:00:01, gateways: [\(list)]}]\n"
            #expect(errors(in: device + rest).map(\.problem.kind) == kinds)
        }
    }

    @Test func `a value is equal after a move to another line or form`() throws {
        let one = try parse("devices:\n  - {name: a, address: C0:FF:EE:00:00:01}\n")
        let other = try parse("\n\ndevices: [{address: C0:FF:EE:00:00:01, name: a}]\n")
        #expect(one == other)
        #expect(one.devices.first?.name.place != other.devices.first?.name.place)
    }

    @Test(.timeLimit(.minutes(3)))
    func `a thousand devices are read, and the first thousand mistakes reported`() throws {
        let good = (0..<1000).map { "  - {name: d\($0), address: \(address($0))}\n" }.joined()
        #expect(try parse("devices:\n" + good).devices.count == 1000)
        let bad = (0..<1000).map { "  - {name: d\($0), adress: \(address($0))}\n" }.joined()
        #expect(errors(in: "devices:\n" + bad).count == 1001, "the last one counts the others")
    }

    private func address(_ number: Int) -> String {
        let hex = String(number, radix: 16)
        let digits = Array(String(repeating: "0", count: 4 - hex.count) + hex)
        return "C0:FF:EE:00:\(String(digits[..<2])):\(String(digits[2...]))"
    }
}

extension String {
    fileprivate var firstLine: String { String(prefix { $0 != "\n" }) }

    @Test func `the command line names the file, else the environment, else it is the standard one`() {
        let environment = [ConfigurationFile.variable: "/home/me/gateway.yaml"]
        #expect(ConfigurationFile("mine.yaml", environment).path == "mine.yaml")
        #expect(ConfigurationFile(nil, environment).path == "/home/me/gateway.yaml")
        #expect(ConfigurationFile(nil, [ConfigurationFile.variable: ""]).path == ConfigurationFile.standardPath)
        #expect(ConfigurationFile(nil, [:]).path == ConfigurationFile.standardPath)
    }
}
