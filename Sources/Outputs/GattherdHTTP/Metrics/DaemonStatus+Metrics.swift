import GattherdModel

extension DaemonStatus {
    /// What the status says, as numbers.
    var metrics: [MetricFamily] {
        [
            MetricFamily(
                "gattherd_build_info",
                .gauge,
                "Always 1; the label is the version",
                [
                    .init(1, ["version": version])
                ]
            ),
            MetricFamily(
                "gattherd_payloads_dropped_total",
                .counter,
                "Values dropped because decoding and history did not keep up",
                dropped
            ),
        ] + adapterMetrics + deviceMetrics + history.metrics + (delivery?.metrics ?? [])
    }

    private var adapterMetrics: [MetricFamily] {
        func family(_ name: String, _ help: String, _ value: (Adapter) -> Int?) -> MetricFamily {
            let points = adapters.compactMap { adapter in
                value(adapter).map { value in
                    MetricFamily.Point(Double(value), ["adapter": adapter.address, "name": adapter.name])
                }
            }
            return MetricFamily("gattherd_adapter_" + name, .gauge, help, points)
        }
        return [
            MetricFamily("gattherd_adapters", .gauge, "Bluetooth adapters that are there", adapters.count),
            family("powered", "1 when the adapter is on") { $0.powered ? 1 : 0 },
            family("discovering", "1 while the adapter scans") { $0.discovering ? 1 : 0 },
            family("links", "Links that are up, those of other programs included") { $0.links },
            family("slots", "The most links that the adapter holds, once that is known") { $0.slots },
            family("waiting_devices", "Devices for which there is no place") { $0.waiting },
            family("connecting", "Attempts to connect under way") { $0.connecting },
        ]
    }

    private var deviceMetrics: [MetricFamily] {
        func family(
            _ name: String,
            _ kind: MetricFamily.Kind,
            _ help: String,
            _ value: (Device) -> Double?
        ) -> MetricFamily {
            let points = devices.compactMap { device in
                value(device).map { MetricFamily.Point($0, ["device": device.device]) }
            }
            return MetricFamily("gattherd_device_" + name, kind, help, points)
        }
        func seconds(_ time: String?) -> Double? {
            time.flatMap { Timestamp(rfc3339: $0.utf8) }.map { Double($0.microseconds) / 1_000_000 }
        }
        return [
            stateFamily,
            family("online", .gauge, "1 while the device's readings are expected") { $0.isOnline ? 1 : 0 },
            family("state_change_timestamp_seconds", .gauge, "When the link came into its state") { seconds($0.since) },
            family("failed_attempts", .gauge, "Failed attempts since the link was last ready") { Double($0.attempt) },
            family("rssi_dbm", .gauge, "Signal strength, as last advertised") { $0.rssi.map(Double.init) },
            family("readings_total", .counter, "Readings since the start") { Double($0.readings) },
            family("rejects_total", .counter, "Payloads that did not decode") { Double($0.rejects) },
            family("last_reading_timestamp_seconds", .gauge, "When the newest reading came") {
                seconds($0.lastReading)
            },
        ]
    }

    private var stateFamily: MetricFamily {
        let points = devices.flatMap { device in
            LinkState.allCases.map { state in
                let isSo = device.state == state.rawValue
                return MetricFamily.Point(isSo ? 1 : 0, ["device": device.device, "state": state.rawValue])
            }
        }
        return MetricFamily("gattherd_device_state", .gauge, "1 for the state that the link is in", points)
    }
}

extension DaemonStatus.History {
    fileprivate var metrics: [MetricFamily] {
        [
            MetricFamily(
                "gattherd_history_writable",
                .gauge,
                "0 while history cannot be written",
                error == nil ? 1 : 0
            ),
            MetricFamily("gattherd_history_size_bytes", .gauge, "The database without its write-ahead log", size),
            MetricFamily("gattherd_history_newest_seq", .gauge, "The number of the newest reading", seq),
            MetricFamily(
                "gattherd_history_undelivered_readings_total",
                .counter,
                "Readings given up before the broker had them",
                undelivered
            ),
            MetricFamily(
                "gattherd_history_unstored_readings_total",
                .counter,
                "Readings delivered without being stored",
                unstored
            ),
        ]
    }
}

extension DaemonStatus.Delivery {
    fileprivate var metrics: [MetricFamily] {
        [
            MetricFamily(
                "gattherd_mqtt_connected",
                .gauge,
                "1 while there is a session with the broker",
                isConnected ? 1 : 0
            ),
            MetricFamily(
                "gattherd_mqtt_backlog_readings",
                .gauge,
                "Readings that the broker has not acknowledged",
                backlog
            ),
        ]
    }
}
