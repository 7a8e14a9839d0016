"""Virtual BLE peripherals for a real bluetoothd.

They speak the language of the simulator: its scenarios, its orders and its log of the truth
(Sources/Tools/GattherdSimulator/README.md). What differs is below them: a real kernel and a real bluetoothd,
reached through /dev/vhci. See ../README.md.
"""
