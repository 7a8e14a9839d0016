import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdDelivery

@Suite struct HomeAssistantTests {
    private let home = HomeAssistant(
        topics: Topics(base: "gattherd/lab-1"),
        gateway: "lab-1",
        prefix: "homeassistant",
        version: "1.2.3"
    )

    private func device(
        _ streams: [DeviceDescription.Stream] = [],
        _ controls: [ControlDescriptor] = []
    ) -> DeviceDescription {
        DeviceDescription(device: "chest-strap", address: "C0:FF:EE:00:00:01", streams: streams, controls: controls)
    }

    private func payload(_ device: DeviceDescription) -> String {
        String(decoding: home.payload(for: device), as: UTF8.self)
    }

    private func control(
        _ name: String,
        _ kind: ControlKind,
        unit: String? = nil,
        echo: String? = nil
    ) -> ControlDescriptor {
        ControlDescriptor(name: name, kind: kind, characteristic: .init(0x2A39), unit: unit, echo: echo)
    }

    @Test func `topic and identifiers depend on gateway and address, so a rename changes nothing`() {
        let topic = home.topic(of: "C0:FF:EE:00:00:01")
        #expect(topic == "homeassistant/device/gattherd_lab-1_c0ffee000001/config")
        #expect(home.status == "homeassistant/status" && home.defaultStatus == nil)
    }

    @Test func `a device's discovery payload has all its components and nothing else`() {
        let metrics = [
            MetricDescriptor(name: "heart_rate", unit: "bpm"),
            MetricDescriptor(name: "sensor_contact", kind: .state, domain: .boolean),
            MetricDescriptor(name: "energy_expended", unit: "kJ", kind: .counter),
            MetricDescriptor(name: "rr_interval", unit: "s", isRepeated: true),
        ]
        let battery = [MetricDescriptor(name: "battery_level", unit: "%")]
        let device = device(
            [.init(name: "heart_rate", metrics: metrics), .init(name: "battery", metrics: battery)],
            [control("reset", .trigger)]
        )
        #expect(payload(device) == Self.strap.split(separator: "\n").joined())
    }

    @Test func `the signal strength of readings is shown once, by the diagnostic sensor`() {
        let metrics = [MetricDescriptor(name: "temperature", unit: "°C"), .signalStrength]
        let text = payload(device([.init(name: "bthome", metrics: metrics)]))
        #expect(text.contains(#""bthome-temperature":"#) && text.contains(#""connection-rssi":"#))
        #expect(!text.contains("bthome-rssi"))
    }

    private static let strap = #"""
        {"availability":[{"topic":"gattherd/lab-1/bridge/state"},{"topic":"gattherd/lab-1/chest-strap/availability"}],
        "availability_mode":"all",
        "device":{"identifiers":["gattherd_lab-1_c0ffee000001"],"connections":[["bluetooth","C0:FF:EE:00:00:01"]],
        "name":"chest-strap","via_device":"gattherd_lab-1_gateway"},
        "origin":{"name":"gattherd","sw_version":"1.2.3"},
        "qos":1,
        "components":{
        "heart_rate-heart_rate":{"platform":"sensor",
        "unique_id":"gattherd_lab-1_c0ffee000001_heart_rate-heart_rate",
        "default_entity_id":"sensor.chest_strap_heart_rate","name":"Heart rate",
        "state_topic":"gattherd/lab-1/chest-strap/heart_rate",
        "value_template":"{{ value_json['heart_rate'] if 'heart_rate' in value_json | default({}) else '' }}",
        "unit_of_measurement":"bpm","state_class":"measurement","suggested_display_precision":0,
        "icon":"mdi:heart-pulse"},
        "heart_rate-sensor_contact":{"platform":"binary_sensor",
        "unique_id":"gattherd_lab-1_c0ffee000001_heart_rate-sensor_contact",
        "default_entity_id":"binary_sensor.chest_strap_sensor_contact","name":"Sensor contact",
        "state_topic":"gattherd/lab-1/chest-strap/heart_rate",
        "value_template":"{% set v = value_json['sensor_contact'] if 'sensor_contact' in value_json | default({}) else '' %}
        {{ v if v is none or v == '' else 'true' if v in [true, 'true', 'on'] else 'false' }}",
        "payload_on":"true","payload_off":"false","icon":"mdi:hand-back-right"},
        "heart_rate-energy_expended":{"platform":"sensor",
        "unique_id":"gattherd_lab-1_c0ffee000001_heart_rate-energy_expended",
        "default_entity_id":"sensor.chest_strap_energy_expended","name":"Energy expended",
        "state_topic":"gattherd/lab-1/chest-strap/heart_rate",
        "value_template":"{{ value_json['energy_expended'] if 'energy_expended' in value_json | default({}) else '' }}",
        "unit_of_measurement":"kJ","device_class":"energy","state_class":"total_increasing",
        "suggested_display_precision":0},
        "heart_rate-rr_interval":{"platform":"sensor",
        "unique_id":"gattherd_lab-1_c0ffee000001_heart_rate-rr_interval",
        "default_entity_id":"sensor.chest_strap_rr_interval","name":"RR interval",
        "state_topic":"gattherd/lab-1/chest-strap/heart_rate",
        "value_template":"{{ (value_json['rr_interval'] | last) if (value_json | default({}))['rr_interval'] | default([], true) else '' }}",
        "unit_of_measurement":"s","device_class":"duration","state_class":"measurement"},
        "battery-battery_level":{"platform":"sensor",
        "unique_id":"gattherd_lab-1_c0ffee000001_battery-battery_level",
        "default_entity_id":"sensor.chest_strap_battery_level","name":"Battery level",
        "state_topic":"gattherd/lab-1/chest-strap/battery",
        "value_template":"{{ value_json['battery_level'] if 'battery_level' in value_json | default({}) else '' }}",
        "unit_of_measurement":"%","device_class":"battery","state_class":"measurement",
        "suggested_display_precision":0,"entity_category":"diagnostic"},
        "reset":{"platform":"button","unique_id":"gattherd_lab-1_c0ffee000001_reset",
        "default_entity_id":"button.chest_strap_reset","name":"Reset",
        "command_topic":"gattherd/lab-1/chest-strap/reset/set"},
        "connection-state":{"platform":"sensor","unique_id":"gattherd_lab-1_c0ffee000001_connection-state",
        "default_entity_id":"sensor.chest_strap_connection","name":"Connection",
        "state_topic":"gattherd/lab-1/chest-strap/connection",
        "availability":[{"topic":"gattherd/lab-1/bridge/state"}],
        "value_template":"{% set v = value_json['state'] if 'state' in value_json | default({}) else
         states(entity_id) if has_value(entity_id) else none %}{{ ('on' if v else 'off') if v is boolean else v }}",
        "device_class":"enum",
        "options":["waiting","connecting","discovering","preparing","ready","disconnecting","disconnected","backingOff",
        "held","failed"],"entity_category":"diagnostic"},
        "connection-rssi":{"platform":"sensor","unique_id":"gattherd_lab-1_c0ffee000001_connection-rssi",
        "default_entity_id":"sensor.chest_strap_rssi","name":"RSSI",
        "state_topic":"gattherd/lab-1/chest-strap/connection",
        "availability":[{"topic":"gattherd/lab-1/bridge/state"}],
        "value_template":"{{ value_json['rssi'] if 'rssi' in value_json | default({}) else '' }}",
        "unit_of_measurement":"dBm","device_class":"signal_strength","state_class":"measurement",
        "suggested_display_precision":0,"entity_category":"diagnostic","enabled_by_default":false},
        "connection-switch":{"platform":"switch","unique_id":"gattherd_lab-1_c0ffee000001_connection-switch",
        "default_entity_id":"switch.chest_strap_link","name":"Link",
        "state_topic":"gattherd/lab-1/chest-strap/connection",
        "availability":[{"topic":"gattherd/lab-1/bridge/state"}],
        "value_template":"{{ ('off' if value_json.state == 'held' else 'on') if value_json is defined else '' }}","state_on":"on","state_off":"off",
        "command_topic":"gattherd/lab-1/bridge/request/link",
        "payload_on":"{\"device\":\"chest-strap\",\"link\":true}",
        "payload_off":"{\"device\":\"chest-strap\",\"link\":false}",
        "icon":"mdi:bluetooth-connect","entity_category":"config"}}}
        """#

    @Test func `each kind of control becomes the matching entity`() {
        let streams = [DeviceDescription.Stream(name: "level", metrics: [MetricDescriptor(name: "now")])]
        let text = payload(
            device(
                streams,
                [
                    control("level", .integer(0...255), unit: "%", echo: "level"), control("gain", .real(0...0.5)),
                    control("lamp", .boolean), control("mode", .choice(["eco", "1"])),
                ]
            )
        )
        let expected = [
            #"""
            "command_topic":"gattherd/lab-1/chest-strap/level/set","state_topic":"gattherd/lab-1/chest-strap/level",
            "value_template":"{{ value_json['now'] if 'now' in value_json | default({}) else '' }}","min":0,"max":255,"step":1,
            "unit_of_measurement":"%"}
            """#,
            #"""
            "gain":{"platform":"number","unique_id":"gattherd_lab-1_c0ffee000001_gain",
            "default_entity_id":"number.chest_strap_gain","name":"Gain",
            "command_topic":"gattherd/lab-1/chest-strap/gain/set","state_topic":"gattherd/lab-1/chest-strap/gain/result",
            "value_template":"{{ value_json['value'] if 'value' in value_json | default({}) else '' }}",
            "min":0.0,"max":0.5,"step":0.001}
            """#,
            #"""
            "value_template":"{% set v = value_json['value'] if 'value' in value_json | default({}) else '' %}
            {{ v if v is none or v == '' else 'true' if v in [true, 'true', 'on'] else 'false' }}",
            "payload_on":"true","payload_off":"false"}
            """#,
            #""options":["eco","1"],"command_template":"{{ value | tojson }}"}"#,
        ]
        for part in expected { #expect(text.contains(part.split(separator: "\n").joined()), "\(text)") }
    }

    static let meanings: [(String, String?, MetricKind, String?, String)] = [
        ("temperature", "°C", .gauge, "temperature", "measurement"),
        ("humidity", "%", .gauge, "humidity", "measurement"), ("uv_index", nil, .gauge, nil, "measurement"),
        ("co2_concentration", "ppm", .gauge, "carbon_dioxide", "measurement"),
        ("true_wind_direction", "°", .gauge, "wind_direction", "measurement_angle"),
        ("magnetic_declination", "°", .gauge, nil, "measurement"),
        ("true_wind_speed", "m/s", .gauge, "wind_speed", "measurement"),
        ("speed", "m/s", .gauge, "speed", "measurement"),
        ("energy", "kWh", .counter, "energy", "total_increasing"), ("energy", "kWh", .gauge, nil, "measurement"),
        ("noise", "dB", .gauge, "sound_pressure", "measurement"), ("gain", "dB", .gauge, nil, "measurement"),
        ("battery_level", "%", .gauge, "battery", "measurement"), ("load", "%", .gauge, nil, "measurement"),
        ("power", "W", .counter, nil, "total_increasing"), ("distance", "m", .counter, "distance", "total_increasing"),
        ("load", "g", .gauge, "weight", "measurement"), ("acceleration_x", "gₙ", .gauge, nil, "measurement"),
        ("steps", nil, .counter, nil, "total_increasing"), ("heart_rate", "bpm", .gauge, nil, "measurement"),
        ("pm2_5", "µg/m³", .gauge, "pm25", "measurement"), ("pm2_5", "1/cm³", .gauge, nil, "measurement"),
        ("pm10_concentration", "µg/m³", .gauge, "pm10", "measurement"),
        ("correlated_color_temperature", "K", .gauge, nil, "measurement"),
        ("standard_deviation_temperature", "°C", .gauge, nil, "measurement"),
    ]

    @Test func `the name of a PM2.5 metric has the decimal point`() {
        #expect(HomeAssistantWords.name("pm2_5_concentration") == "PM2.5 concentration")
    }

    @Test func `the templates of a batched stream read the last reading with the metric`() {
        let metrics = [
            MetricDescriptor(name: "level", unit: "%"), MetricDescriptor(name: "rr", isRepeated: true),
            MetricDescriptor(name: "on", kind: .state),
        ]
        let device = DeviceDescription(device: "a", address: "A", streams: [.init(name: "s", metrics: metrics)])
        let text = String(decoding: home.payload(for: device, batched: ["s"]), as: UTF8.self)
        let last = { (name: String) in
            "{% set r = value_json | default([]) | selectattr('\(name)', 'defined') | list | last | default({}, true) "
                + "%}"
        }
        #expect(text.contains(last("level") + "{{ r['level'] if 'level' in r else '' }}"))
        #expect(text.contains(last("rr") + "{{ (r['rr'] | last) if (r)['rr'] | default([], true) else '' }}"))
        #expect(text.contains(last("on") + "{% set v = r['on'] if 'on' in r else"))
        #expect(!text.contains("value_json['level']"))
    }

    @Test(arguments: meanings)
    func `a metric has the class that its unit allows`(
        name: String,
        unit: String?,
        kind: MetricKind,
        deviceClass: String?,
        stateClass: String
    ) {
        let meaning = HomeAssistantMeaning(of: MetricDescriptor(name: name, unit: unit, kind: kind))
        #expect(meaning.deviceClass == deviceClass)
        #expect(meaning.stateClass == stateClass)
    }

    /// The units that Home Assistant 2025 accepts for each class in use; long lists are shortened to the relevant part.
    static let units: [String: Set<String>] = [
        "battery": ["%"], "humidity": ["%"], "moisture": ["%"], "carbon_dioxide": ["ppm"], "carbon_monoxide": ["ppm"],
        "volatile_organic_compounds_parts": ["ppb", "ppm"], "volatile_organic_compounds": ["µg/m³"], "pm1": ["µg/m³"],
        "pm25": ["µg/m³"], "pm10": ["µg/m³"], "wind_speed": ["ft/s", "km/h", "kn", "m/s", "mph"],
        "wind_direction": ["°"], "precipitation": ["cm", "in", "mm"], "sound_pressure": ["dB", "dBA"],
        "blood_glucose_concentration": ["mg/dL", "mmol/L"], "temperature": ["°C", "°F", "K"],
        "pressure": ["Pa", "hPa", "kPa", "bar", "cbar", "mbar", "mmHg", "inHg", "psi"],
        "voltage": ["V", "mV", "µV", "kV", "MV"], "current": ["A", "mA"], "power": ["mW", "W", "kW", "MW", "GW", "TW"],
        "energy": ["J", "kJ", "MJ", "GJ", "mWh", "Wh", "kWh", "MWh", "GWh", "TWh", "cal", "kcal", "Mcal", "Gcal"],
        "illuminance": ["lx"], "irradiance": ["W/m²"], "signal_strength": ["dB", "dBm"],
        "frequency": ["Hz", "kHz", "MHz", "GHz"], "distance": ["km", "m", "cm", "mm", "mi", "nmi", "yd", "in", "ft"],
        "speed": ["ft/s", "in/s", "km/h", "kn", "m/s", "mm/s", "mph", "mm/d", "mm/h", "in/d", "in/h"],
        "weight": ["kg", "g", "mg", "µg", "oz", "lb", "st"], "duration": ["d", "h", "min", "s", "ms", "µs"],
    ]

    @Test func `no class has a unit that Home Assistant rejects, for any metric name`() {
        let all = Self.units.values.reduce(into: Set<String>()) { $0.formUnion($1) }
        let names = [
            "battery", "humidity", "moisture", "co2", "co", "voc", "pm1", "pm2_5", "pm10", "wind", "rain", "noise",
            "glucose", "other",
        ]
        for (name, unit) in names.flatMap({ name in all.map { (name, $0) } }) {
            for kind in [MetricKind.gauge, .counter] {
                let meaning = HomeAssistantMeaning(of: MetricDescriptor(name: name, unit: unit, kind: kind))
                guard let found = meaning.deviceClass else { continue }
                #expect(Self.units[found]?.contains(unit) == true, "\(found) in \(unit)")
            }
        }
    }

    @Test func `metrics of the same name include their stream's name, and all entities are unique`() {
        let metric = MetricDescriptor(name: "type", kind: .state)
        let text = payload(
            device([.init(name: "one", metrics: [metric]), .init(name: "two", metrics: [metric, metric])])
        )
        #expect(text.contains(#""name":"One type""#))
        #expect(text.contains(#""name":"Two type""#))
        #expect(text.split(separator: #""two-type":"#).count == 2)
    }

    @Test func `labels become options of a state and types of an event, without those for nothing`() {
        let metrics = [
            MetricDescriptor(name: "phase", kind: .state, domain: .labels(["on", "don't"])),
            MetricDescriptor(name: "button", kind: .event, domain: .labels(["none", "press", "it's"])),
            MetricDescriptor(name: "motion", kind: .event, domain: .boolean),
            MetricDescriptor(name: "code", kind: .event),
        ]
        let text = payload(device([.init(name: "s", metrics: metrics)]))
        #expect(text.contains(#""device_class":"enum","options":["on","don't"],"icon":"mdi:tag-outline"}"#))
        #expect(text.contains(#""s-button":{"platform":"event""#))
        #expect(text.contains(#""event_types":["press","it's"]"#))
        #expect(text.contains(#"if v in ['press', 'it\\'s'] else '' }}","device_class":"button"}"#))
        #expect(text.contains(#""s-motion":{"platform":"event""#))
        #expect(text.contains(#""event_types":["motion"]"#))
        #expect(text.contains(#""s-code":{"platform":"sensor""#))
    }

    @Test func `a device has one battery, preferably that of the Battery Service`() {
        let flag = MetricDescriptor(name: "battery_low", kind: .state, domain: .boolean)
        let streams = [
            DeviceDescription.Stream(name: "a", metrics: [MetricDescriptor(name: "battery", unit: "%"), flag]),
            DeviceDescription.Stream(name: "battery", metrics: [MetricDescriptor(name: "battery_level", unit: "%")]),
        ]
        let text = payload(device(streams))
        #expect(text.split(separator: #""device_class":"battery""#).count == 2)
        #expect(text.contains(#""unit_of_measurement":"%","device_class":"battery""#))
        let alone = payload(device([.init(name: "a", metrics: [flag])]))
        #expect(alone.contains(#""payload_off":"false","device_class":"battery","entity_category":"diagnostic"}"#))
    }

    @Test func `facts, names and the place of a device are part of its payload`() {
        var facts = DeviceFacts.Texts()
        (facts.manufacturer, facts.model, facts.hardware) = ("Acme", "HR-1", "B")
        (facts.firmware, facts.serial) = ("1.0", "007")
        var presentation = Presentation()
        presentation.labels["chest-strap"] = DeviceLabel(title: "Chest \"strap\"", area: "Gym")
        let payload = home.payload(for: device(), presentation: presentation, facts: facts)
        let text = String(decoding: payload, as: UTF8.self)
        let expected = #"""
            "name":"Chest \"strap\"","manufacturer":"Acme","model":"HR-1","hw_version":"B","sw_version":"1.0",
            "serial_number":"007","suggested_area":"Gym","via_device":"gattherd_lab-1_gateway"}
            """#
        #expect(text.contains(expected.split(separator: "\n").joined()), "\(text)")
    }

    @Test func `alerts that a device can raise are binary sensors`() {
        var presentation = Presentation()
        presentation.alerts = [
            AlertRule(name: "low-battery", condition: .batteryBelow(15)),
            AlertRule(name: "silent", device: "chest-strap", condition: .silent(.seconds(60))),
            AlertRule(name: "other", device: "other", condition: .silent(.seconds(60))),
        ]
        let bare = String(decoding: home.payload(for: device(), presentation: presentation), as: UTF8.self)
        #expect(bare.contains(#""alert-silent":{"platform":"binary_sensor""#))
        #expect(!bare.contains("alert-low-battery") && !bare.contains("alert-other"))
        let battery = device([.init(name: "battery", metrics: [MetricDescriptor(name: "battery_level", unit: "%")])])
        let full = String(decoding: home.payload(for: battery, presentation: presentation), as: UTF8.self)
        let template =
            "value_json.alerts | selectattr('address', 'eq', 'C0:FF:EE:00:00:01') | "
            + "selectattr('alert', 'eq', 'low-battery') | list else 'OFF' }}"
        #expect(full.contains(template))
    }

    @Test func `a sensor that only advertises has no switch`() {
        var sensor = device()
        sensor.isConnectable = false
        #expect(!payload(sensor).contains("connection-switch"))
        #expect(payload(sensor).contains("connection-state"))
    }

    @Test func `the gateway is a device that its own devices refer to`() {
        var home = home
        home.configurationURL = "http://gateway.local:8780/"
        let text = String(decoding: home.gatewayPayload(), as: UTF8.self)
        #expect(home.gatewayTopic == "homeassistant/device/gattherd_lab-1_gateway/config")
        #expect(text.contains(#""device":{"identifiers":"gattherd_lab-1_gateway","name":"gattherd lab-1""#))
        #expect(text.contains(#""configuration_url":"http://gateway.local:8780/""#))
        let state = #""availability":[],"payload_on":"online","payload_off":"offline","device_class":"connectivity""#
        #expect(text.contains(state))
        for name in ["backlog", "ready_devices", "version", "output_behind"] { #expect(text.contains("_\(name)\"")) }
        #expect(home.isGateway(home.gatewayPayload()))
        #expect(!home.isGateway(home.payload(for: device())))
        #expect(home.device(in: home.gatewayPayload()) == nil)
    }

    @Test func `the start of a payload identifies its gateway`() {
        let own = home.payload(for: device())
        #expect(home.device(in: Array(own.prefix(120))) == "chest-strap")
        let other = HomeAssistant(
            topics: Topics(base: "gattherd/lab"),
            gateway: "lab",
            prefix: "homeassistant",
            version: ""
        )
        #expect(other.device(in: own) == nil)
        #expect(home.device(in: Array("{}".utf8)) == nil)
        #expect(home.device(in: []) == nil)
    }

    @Test func `quotes and backslashes in a literal are escaped, also before combining marks`() {
        let metric = MetricDescriptor(name: "button")
        let template = HomeAssistantTemplate.occurrence(metric, type: "it'\u{301}s \\\u{200D}")
        let literal = "'it\\'\u{301}s \\\\\u{200D}'"
        #expect(template.utf8.firstRange(of: literal.utf8) != nil, "\(template)")
    }
}
