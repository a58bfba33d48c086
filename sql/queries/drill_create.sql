create database {name}
