import GattherdMachines
import GattherdModel
import Testing

@Suite struct AlertMachineTests {
    private static let cold = AlertRule(
        name: "cold",
        device: "freezer",
        condition: .outside(metric: "temperature", below: -30, above: -15),
        hysteresis: 2,
        holding: .seconds(60)
    )
    private static let silent = AlertRule(name: "silent", condition: .silent(.seconds(300)))
    private static let battery = AlertRule(name: "battery", condition: .batteryBelow(15))
    private static let temperature = MetricDescriptor(name: "temperature", unit: "°C")
    private static let level = MetricDescriptor(name: "battery_level", unit: "%")

    private var machine = AlertMachine()

    private mutating func configure(_ rules: [AlertRule], at seconds: Int = 0, _ devices: [String] = ["freezer"]) {
        _ = machine.handle(.configure(rules, devices: devices), at: .seconds(seconds))
    }

    private mutating func value(_ value: Double, at seconds: Int, _ metric: MetricDescriptor = temperature) -> [String]
    {
        let event = AlertMachine.Event.value(value, metric, stream: "s", device: "freezer")
        return words(machine.handle(event, at: .seconds(seconds)))
    }

    private mutating func tick(at seconds: Int) -> [String] { words(machine.handle(.tick, at: .seconds(seconds))) }

    private func words(_ changes: [AlertMachine.Change]) -> [String] {
        changes.map { change in
            switch change {
            case .raised(let key, let reason): "raised \(key.alert) of \(key.device): \(reason)"
            case .cleared(let key): "cleared \(key.alert) of \(key.device)"
            }
        }
    }

    @Test mutating func `a value outside the limits raises the alert after the holding time`() {
        configure([Self.cold])
        #expect(value(-14.5, at: 10) == [])
        #expect(machine.deadline == .seconds(70))
        #expect(tick(at: 69) == [])
        #expect(tick(at: 70) == ["raised cold of freezer: temperature is -14.5 °C, above -15"])
        #expect(machine.deadline == nil)
    }

    @Test mutating func `a value inside the limits before the end of the holding time restarts it`() {
        configure([Self.cold])
        _ = value(-14, at: 10)
        _ = value(-20, at: 30)
        #expect(machine.deadline == nil)
        _ = value(-31, at: 40)
        #expect(machine.deadline == .seconds(100))
        #expect(tick(at: 100) == ["raised cold of freezer: temperature is -31 °C, below -30"])
    }

    @Test mutating func `an alert is cleared by a value inside the limits by more than the hysteresis`() {
        configure([Self.cold])
        _ = value(-14, at: 0)
        _ = tick(at: 60)
        #expect(value(-16, at: 61) == [])
        #expect(value(-17, at: 62) == ["cleared cold of freezer"])
        #expect(value(-16, at: 63) == [])
        #expect(machine.deadline == nil)
    }

    @Test mutating func `hysteresis does not prolong the time outside the limits once a value is inside again`() {
        configure([Self.cold])
        _ = value(-14.9, at: 0)
        #expect(machine.deadline == .seconds(60))
        #expect(value(-15.1, at: 1) == [])
        #expect(machine.deadline == nil)
        #expect(tick(at: 60) == [])
    }

    @Test mutating func `without a holding time a value raises the alert at once`() {
        configure([Self.battery])
        #expect(value(14, at: 5, Self.level) == ["raised battery of freezer: battery_level is 14 %, below 15"])
        #expect(value(15, at: 6, Self.level) == ["cleared battery of freezer"])
    }

    @Test mutating func `an alert ignores metrics of other names and units`() {
        configure([Self.battery, Self.cold])
        #expect(value(1, at: 0, MetricDescriptor(name: "humidity", unit: "%")) == [])
        #expect(value(1, at: 0, MetricDescriptor(name: "battery", unit: "V")) == [])
        #expect(machine.deadline == nil)
    }

    @Test mutating func `an alert of several series is cleared when all are inside`() {
        configure([Self.battery])
        _ = machine.handle(.value(5, Self.level, stream: "a", device: "freezer"), at: .zero)
        _ = machine.handle(.value(6, Self.level, stream: "b", device: "freezer"), at: .zero)
        #expect(machine.handle(.value(50, Self.level, stream: "a", device: "freezer"), at: .zero) == [])
        let last = machine.handle(.value(50, Self.level, stream: "b", device: "freezer"), at: .zero)
        #expect(words(last) == ["cleared battery of freezer"])
    }

    private mutating func describe(_ streams: DeviceDescription.Stream...) -> [String] {
        let description = DeviceDescription(device: "freezer", address: "", streams: streams)
        return words(machine.handle(.described(description), at: .seconds(1)))
    }

    @Test mutating func `an alert is cleared when the device has lost the streams outside the limits`() {
        configure([Self.battery, Self.silent])
        _ = machine.handle(.value(5, Self.level, stream: "a", device: "freezer"), at: .zero)
        _ = machine.handle(.value(6, Self.level, stream: "b", device: "freezer"), at: .zero)
        #expect(describe(.init(name: "b", metrics: [Self.level])) == [])
        #expect(describe(.init(name: "c", metrics: [Self.level])) == ["cleared battery of freezer"])
    }

    @Test mutating func `an alert of an earlier run stays until its metric has left the device`() {
        machine = AlertMachine(raised: [AlertMachine.Key(alert: "battery", device: "freezer")])
        configure([Self.battery])
        #expect(describe(.init(name: "a", metrics: [Self.temperature, Self.level])) == [])
        #expect(describe(.init(name: "a", metrics: [Self.temperature])) == ["cleared battery of freezer"])
    }

    @Test mutating func `an alert of an earlier run is cleared when all series that were outside are inside`() {
        machine = AlertMachine(raised: [AlertMachine.Key(alert: "battery", device: "freezer")])
        configure([Self.battery])
        for (value, stream) in [(80.0, "a"), (5, "b"), (6, "c")] {
            let stored = AlertMachine.Event.stored(value, Self.level, stream: stream, device: "freezer")
            #expect(machine.handle(stored, at: .zero) == [])
        }
        #expect(machine.handle(.value(50, Self.level, stream: "a", device: "freezer"), at: .zero) == [])
        #expect(machine.handle(.value(50, Self.level, stream: "b", device: "freezer"), at: .zero) == [])
        let last = machine.handle(.value(50, Self.level, stream: "c", device: "freezer"), at: .zero)
        #expect(words(last) == ["cleared battery of freezer"])
    }

    @Test mutating func `a device that is replaced by another one of the same name has none of its alerts`() {
        configure([Self.battery, Self.silent])
        _ = machine.handle(.held(true, device: "freezer"), at: .zero)
        _ = machine.handle(.value(5, Self.level, stream: "a", device: "freezer"), at: .zero)
        let values = [AlertMachine.LastValue(5, Self.level, stream: "a", device: "freezer")]
        let replaced = AlertMachine.Event.configure(
            [Self.battery, Self.silent],
            devices: ["freezer"],
            readdressed: ["freezer"],
            values: values
        )
        #expect(words(machine.handle(replaced, at: .seconds(1))) == ["cleared battery of freezer"])
        #expect(machine.handle(.value(100, Self.level, stream: "b", device: "freezer"), at: .seconds(2)) == [])
        #expect(machine.deadline == nil, "the device is still held")
    }

    @Test mutating func `an alert of an earlier run is cleared if its device was replaced meanwhile`() {
        machine = AlertMachine(raised: [AlertMachine.Key(alert: "battery", device: "freezer")])
        let other = AlertMachine.Key(alert: "battery", device: "other")
        let key = AlertMachine.Key(alert: "battery", device: "freezer")
        #expect(words(machine.handle(.outdated([key, other]), at: .zero)) == ["cleared battery of freezer"])
        #expect(words(machine.handle(.configure([Self.battery], devices: ["freezer"]), at: .zero)) == [])
        #expect(machine.handle(.stored(5, Self.level, stream: "a", device: "freezer"), at: .zero) == [])
        #expect(value(50, at: 1, Self.level) == [])
    }

    @Test mutating func `values of a device that is removed raise no alert later, but its silence does`() {
        configure([Self.cold, Self.silent])
        _ = value(-14, at: 10)
        #expect(machine.deadline == .seconds(70))
        #expect(words(machine.handle(.removed(device: "freezer"), at: .seconds(20))) == [])
        #expect(tick(at: 70) == [])
        #expect(tick(at: 300) == ["raised silent of freezer: no value for 5m"])
        #expect(words(machine.handle(.removed(device: "freezer"), at: .seconds(301))) == [])
        #expect(words(machine.handle(.removed(device: "other"), at: .seconds(302))) == [])
    }

    @Test mutating func `a stored value raises no alert`() {
        configure([Self.battery])
        #expect(machine.handle(.stored(5, Self.level, stream: "a", device: "freezer"), at: .zero) == [])
        #expect(machine.deadline == nil && tick(at: 1000) == [])
    }

    @Test mutating func `silence raises the alert, and the next reading clears it`() {
        configure([Self.silent], at: 100)
        #expect(machine.deadline == .seconds(400))
        _ = machine.handle(.heard(device: "freezer"), at: .seconds(200))
        #expect(tick(at: 400) == [])
        #expect(tick(at: 500) == ["raised silent of freezer: no value for 5m"])
        #expect(words(machine.handle(.heard(device: "freezer"), at: .seconds(501))) == ["cleared silent of freezer"])
        #expect(machine.deadline == .seconds(801))
    }

    @Test mutating func `a device that a person disconnected is not missed`() {
        configure([Self.silent])
        _ = machine.handle(.held(true, device: "freezer"), at: .seconds(10))
        #expect(machine.deadline == nil)
        _ = machine.handle(.held(false, device: "freezer"), at: .seconds(1000))
        #expect(machine.deadline == .seconds(1300))
    }

    @Test mutating func `a device that another gateway owns has no alerts here`() {
        configure([Self.silent, Self.battery])
        _ = value(14, at: 0, Self.level)
        let lost = machine.handle(.elsewhere(true, device: "freezer"), at: .seconds(10))
        #expect(words(lost) == ["cleared battery of freezer"])
        #expect(machine.ignores("freezer") && machine.deadline == nil)
        #expect(value(13, at: 20, Self.level) == [] && tick(at: 1000) == [])
        configure([Self.silent, Self.battery], at: 1000)
        #expect(machine.deadline == nil)
        #expect(machine.handle(.elsewhere(false, device: "freezer"), at: .seconds(2000)) == [])
        #expect(machine.deadline == .seconds(2300))
        #expect(value(13, at: 2001, Self.level).count == 1)
    }

    @Test mutating func `a lease may be known before its device`() {
        machine = AlertMachine(raised: [AlertMachine.Key(alert: "silent", device: "freezer")])
        #expect(machine.handle(.elsewhere(true, device: "freezer"), at: .zero) == [])
        let changes = machine.handle(.configure([Self.silent], devices: ["freezer"]), at: .zero)
        #expect(words(changes) == ["cleared silent of freezer"])
        #expect(machine.deadline == nil)
    }

    @Test mutating func `alerts of an earlier run stay raised until a value clears them`() {
        let (cold, gone) = (
            AlertMachine.Key(alert: "cold", device: "freezer"), AlertMachine.Key(alert: "cold", device: "gone")
        )
        machine = AlertMachine(raised: [cold, gone])
        let changes = machine.handle(.configure([Self.cold], devices: ["freezer"]), at: .zero)
        #expect(changes == [.cleared(gone)])
        #expect(value(-14, at: 1) == [])
        #expect(value(-20, at: 2) == ["cleared cold of freezer"])
    }

    @Test mutating func `a removed rule or device clears its alerts, and an unchanged one keeps its state`() {
        configure([Self.battery, Self.silent])
        _ = value(5, at: 0, Self.level)
        let same = machine.handle(.configure([Self.battery], devices: ["freezer", "new"]), at: .seconds(1))
        #expect(same == [])
        let changes = machine.handle(.configure([Self.battery], devices: ["new"]), at: .seconds(2))
        #expect(words(changes) == ["cleared battery of freezer"])
        #expect(machine.ignores("freezer") && !machine.ignores("new"))
    }

    private mutating func configure(
        _ rules: [AlertRule],
        at seconds: Int,
        last value: Double,
        _ metric: MetricDescriptor
    ) -> [String] {
        let values = [AlertMachine.LastValue(value, metric, stream: "s", device: "freezer")]
        return words(machine.handle(.configure(rules, devices: ["freezer"], values: values), at: .seconds(seconds)))
    }

    @Test mutating func `a new rule begins with the last value`() {
        configure([Self.silent])
        let low = "raised battery of freezer: battery_level is 14 %, below 15"
        #expect(configure([Self.battery], at: 10, last: 14, Self.level) == [low])
        #expect(value(50, at: 11, Self.level) == ["cleared battery of freezer"])
        #expect(configure([Self.battery, Self.cold], at: 20, last: -10, Self.temperature) == [])
        #expect(machine.deadline == .seconds(80))
    }

    @Test mutating func `the last value changes nothing for an unchanged rule, or under the lease of another gateway`()
    {
        configure([Self.battery])
        #expect(configure([Self.battery], at: 1, last: 5, Self.level) == [])
        _ = machine.handle(.elsewhere(true, device: "freezer"), at: .seconds(2))
        #expect(configure([], at: 3, last: 5, Self.level) == [])
        #expect(configure([Self.battery], at: 4, last: 5, Self.level) == [])
        _ = machine.handle(.elsewhere(false, device: "freezer"), at: .seconds(5))
        #expect(tick(at: 100) == [])
    }

    @Test mutating func `a changed rule keeps its alert raised while the last value is outside`() {
        configure([Self.cold])
        _ = value(-14, at: 0)
        _ = tick(at: 60)
        var changed = Self.cold
        changed.holding = .seconds(600)
        #expect(configure([changed], at: 70, last: -14, Self.temperature) == [])
        // Inside the bounds, but not by the hysteresis.
        changed.condition = .outside(metric: "temperature", below: -30, above: -13)
        #expect(configure([changed], at: 80, last: -14, Self.temperature) == [])
        changed.condition = .outside(metric: "temperature", below: -30, above: -10)
        #expect(configure([changed], at: 90, last: -14, Self.temperature) == ["cleared cold of freezer"])
        #expect(machine.deadline == nil)
    }

    @Test mutating func `a changed time of silence keeps the alert of a device that is silent for longer`() {
        configure([Self.silent])
        #expect(tick(at: 300).count == 1)
        let steps: [(seconds: Int, changes: [String])] = [(600, []), (2000, ["cleared silent of freezer"])]
        for (seconds, changes) in steps {
            let rule = AlertRule(name: "silent", condition: .silent(.seconds(seconds)))
            let event = AlertMachine.Event.configure([rule], devices: ["freezer"])
            #expect(words(machine.handle(event, at: .seconds(1000))) == changes)
        }
        #expect(machine.deadline == .seconds(2000))
    }

    @Test mutating func `a rule that changes between values and silence has a new alert with its own reason`() {
        configure([Self.battery])
        #expect(value(14, at: 1, Self.level) == ["raised battery of freezer: battery_level is 14 %, below 15"])
        let silence = AlertRule(name: "battery", condition: .silent(.seconds(300)))
        #expect(
            configure([silence], at: 1000, last: 14, Self.level)
                == ["cleared battery of freezer", "raised battery of freezer: no value for 5m"]
        )
        #expect(
            configure([Self.battery], at: 1001, last: 14, Self.level)
                == ["cleared battery of freezer", "raised battery of freezer: battery_level is 14 %, below 15"]
        )
    }

    @Test mutating func `any events keep the deadline in the future and alternate raised and cleared`() {
        var random = SplitMix64(seed: 7)
        configure([Self.cold, Self.silent, Self.battery], ["freezer", "b"])
        var raised: Set<AlertMachine.Key> = []
        var count = 0
        for step in 0..<6000 {
            let now = Duration.seconds(step)
            let device = Bool.random(using: &random) ? "freezer" : "b"
            let event: AlertMachine.Event =
                switch Int.random(in: 0..<6, using: &random) {
                case 0: .value(.random(in: -40...0, using: &random), Self.temperature, stream: "s", device: device)
                case 1: .value(.random(in: 0...30, using: &random), Self.level, stream: "s", device: device)
                case 2: .held(.random(using: &random), device: device)
                case 3: .heard(device: device)
                case 4: .elsewhere(.random(using: &random), device: device)
                default: .tick
                }
            for change in machine.handle(event, at: now) + machine.handle(.tick, at: now) {
                switch change {
                case .raised(let key, _):
                    #expect(raised.insert(key).inserted)
                    count += 1
                case .cleared(let key): #expect(raised.remove(key) != nil)
                }
            }
            if let deadline = machine.deadline { #expect(deadline > now) }
        }
        #expect(count > 100)
    }
}
